"""Signatures: who vouches for statements and for released weights."""
