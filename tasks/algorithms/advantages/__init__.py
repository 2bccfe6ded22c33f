"""Advantage estimators: a file for each."""
