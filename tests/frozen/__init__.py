"""Stores as each version wrote them: what a later version still has to audit."""
