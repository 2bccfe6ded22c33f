"""Studies: variants of settings x seeds x models, to one table, one page and one evidence file."""
