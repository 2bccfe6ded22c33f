"""The language that a BCP 47 tag names, by which tables of words are looked up."""

from functools import lru_cache

from data_schemas.rows import language_tag

_SAME = {"fil": "tl"}
"""Filipino is the standard of Tagalog; a table of its words has the older tag."""


@lru_cache(maxsize=256)
def primary(language: str) -> str:
    """Return the primary subtag in the spelling of our tables: `zh` of zh-TW, `tl` of fil-PH."""
    tag = str(language_tag(language)).replace("_", "-").partition("-")[0].casefold()
    return _SAME.get(tag, tag)
