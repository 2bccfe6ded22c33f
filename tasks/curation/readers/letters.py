"""What is known of the encoding of a text: UTF-8, UTF-16 by its mark or its zeros, or candidates.

No encoding of one byte a letter can be told from another for certain: every byte is a letter in
each of them. So a table in one is refused with the likely ones, each with a line as it would read,
and whoever knows the language sees which is right.
"""

import codecs
import re

from charset_normalizer import from_bytes

_HEAD = 64
"""Bytes of a header, in which most letters are ASCII."""
_FEW_BROKEN = 3
"""Bytes that are no UTF-8 and still damage; at the end of the sample a letter may be cut in two."""
_DAMAGED_LINES = 0.01
"""Share of lines with such bytes up to which they are damage, however many a line has."""
_BROKEN = re.compile("[\udc80-\udcff]")
"""A byte that is no UTF-8, as `surrogateescape` decodes it."""
_ENCODINGS = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("cp874", "cp932", "cp949", "big5", "gb18030", "euc_jp", "koi8_r", "iso8859_2", "mac_roman"),
)
"""What spreadsheets and databases write beside UTF-8: the code pages of Windows, and others that
are common in a country."""
_CANDIDATES = 5
_LETTERS = 60
"""Most characters of a line that is shown."""


def other_encoding(start: bytes) -> str:
    """Say that a file is not UTF-8, and what to do about it; '' if it may be UTF-8 as a whole.

    A few bytes that are none, or many in few lines, are damaged rows; a file that was written in
    another encoding has no letter beyond ASCII that is UTF-8.

    Args:
        start: first bytes of the file.
    """
    if name := _utf_16(start):
        return f"{name}. Convert it: iconv -f {name} -t UTF-8"
    text = start.decode("utf-8", errors="surrogateescape")
    lines = [len(_BROKEN.findall(line)) for line in text.splitlines()]
    broken = sum(lines)
    sound = sum(letter > "\x7f" for letter in text) - broken
    is_damage = broken <= _FEW_BROKEN or sum(map(bool, lines)) <= len(lines) * _DAMAGED_LINES
    if is_damage or sound:
        return ""
    readings = ", ".join(f"{name} {line!r}" for name, line in _readings(start))
    return (
        "not UTF-8, and no byte says what it is. Save it as UTF-8 with the program that wrote it."
        + (f" A line of it would read: {readings}" if readings else "")
    )


def _utf_16(start: bytes) -> str:
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "UTF-16"
    head = start[:_HEAD]
    for name, first, other in (("UTF-16LE", 1, 0), ("UTF-16BE", 0, 1)):
        # No mark, but every second byte of text in ASCII is zero.
        zeros = head[first::2].count(0)
        if zeros > _FEW_BROKEN and zeros > len(head) // 4 and not head[other::2].count(0):
            return name
    return ""


def _readings(start: bytes) -> list[tuple[str, str]]:
    """Return likely encodings, each with the first line that is not ASCII, no reading twice."""
    whole = start[: start.rfind(b"\n") + 1] or start
    line = next((line for line in whole.splitlines() if not line.isascii()), whole)
    readings: dict[str, str] = {}
    for match in from_bytes(whole, cp_isolation=[*_ENCODINGS]):
        text = line.decode(match.encoding, errors="replace").strip()[:_LETTERS]
        readings.setdefault(text, match.encoding)
    return [(name, text) for text, name in list(readings.items())[:_CANDIDATES]]
