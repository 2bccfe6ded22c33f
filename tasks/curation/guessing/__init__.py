"""Guess a mapping from the rows of a table, by evidence and in any language: a draft to correct."""
