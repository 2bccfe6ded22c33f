"""Names of files that are no data, wherever they lie: what systems and downloads leave."""

_SYSTEM = ("thumbs.db", "desktop.ini", "ehthumbs.db", "$recycle.bin", "system volume information")
"""Files of Windows; those of macOS and git begin with a dot."""
_BESIDE = (
    ".md5",
    ".sha1",
    ".sha256",
    ".sha512",
    ".crc",
    ".crc32",
    ".sfv",
    ".asc",
    ".sig",
    ".url",
    ".lnk",
)
"""Endings of checksums and signatures of the file beside them, and of links."""


def is_no_data(name: str) -> bool:
    """Whether a file or folder of this name holds no rows: hidden, a checksum, or a system's own.

    A name that begins with `_` is the project's own or Spark's: a mapping, a mark, a log. One that
    begins with `~$` is the lock of a spreadsheet that is open.
    """
    small = name.lower()
    return small.startswith((".", "_", "~$")) or small in _SYSTEM or small.endswith(_BESIDE)
