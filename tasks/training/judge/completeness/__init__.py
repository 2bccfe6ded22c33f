"""Whether an explanation of an ambiguous word names all of its meanings, by a judge."""
