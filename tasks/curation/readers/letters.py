"""What is known of the encoding of a text: UTF-8, UTF-16 or UTF-32 by its mark, or candidates.

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
_LEAST_SOUND = 0.05
"""Share of lines with letters beyond ASCII that are UTF-8 throughout, from which a file is UTF-8 in
part. Of Thai, Chinese, Japanese and Korean in their own encodings, pairs of bytes are such letters
by accident, and hardly ever all of a line."""
_BROKEN = re.compile("[\udc80-\udcff]")
"""A byte that is no UTF-8, as `surrogateescape` decodes it."""
_ENCODINGS = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("cp874", "cp932", "cp949", "big5", "gb18030", "euc_jp", "koi8_r", "iso8859_2", "mac_roman"),
)
"""What spreadsheets and databases write beside UTF-8: the code pages of Windows, and others that
are common in a country."""
_READ_AS = ("cp1252", "latin-1", "cp1251", "cp1250", "cp1254", "cp437", "mac_roman")
"""Code pages in which UTF-8 is read by mistake, and written again as the letters of its bytes."""
_SEVEN_BITS = {
    rb"\x1b\$[@B]|\x1b\([IJ]": "ISO-2022-JP",
    rb"\x1b\$\)C": "ISO-2022-KR",
    rb"\x1b\$\)[AG]": "ISO-2022-CN",
}
"""Escapes that switch the letters of seven bits, as old mail writes them."""
_CANDIDATES = 5
_LETTERS = 60
"""Most characters of a line that is shown."""


def other_encoding(start: bytes) -> str:
    """Say that a file is not UTF-8, and what to do about it; '' if it may be UTF-8 as a whole.

    A few bytes that are none, or many in few lines, are damaged rows; a file that was written in
    another encoding has few lines beyond ASCII that are UTF-8. One that was read in a code page
    and written as UTF-8 is UTF-8, of the wrong letters.

    Args:
        start: first bytes of the file.
    """
    if name := _wide(start) or _with_escapes(start):
        return f"{name}. Convert it: iconv -f {name} -t UTF-8"
    text = start.decode("utf-8", errors="surrogateescape")
    lines = [len(_BROKEN.findall(line)) for line in text.splitlines()]
    sound = [line for line in text.splitlines() if not line.isascii() and not _BROKEN.search(line)]
    num_broken = sum(map(bool, lines))
    is_damage = sum(lines) <= _FEW_BROKEN or num_broken <= len(lines) * _DAMAGED_LINES
    if is_damage or len(sound) > _LEAST_SOUND * (len(sound) + num_broken):
        return _twice_encoded(text)
    readings = ", ".join(f"{name} {line!r}" for name, line in _readings(start))
    return (
        "not UTF-8, and no byte says what it is. Save it as UTF-8 with the program that wrote it."
        + (f" A line of it would read: {readings}" if readings else "")
    )


def _wide(start: bytes) -> str:
    if start[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):  # the former begins as UTF-16 does
        return "UTF-32"
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "UTF-16"
    head = start[:_HEAD]
    for name, first, other in (("UTF-16LE", 1, 0), ("UTF-16BE", 0, 1)):
        # No mark, but every second byte of text in ASCII is zero.
        zeros = head[first::2].count(0)
        if zeros > _FEW_BROKEN and zeros > len(head) // 4 and not head[other::2].count(0):
            return name
    return ""


def _with_escapes(start: bytes) -> str:
    """Name an encoding that is ASCII to the eye of a decoder; '' if it is none of these."""
    return next((name for escape, name in _SEVEN_BITS.items() if re.search(escape, start)), "")


def _twice_encoded(text: str) -> str:
    """Say that lines are UTF-8 which was read as another and written again; '' if most are not."""
    lines = [line for line in text.splitlines() if not line.isascii()]
    mended = [(line, one) for line in lines if (one := _read_once(line))]
    if len(mended) <= len(lines) / 2:
        return ""
    line, one = ((text.strip()[:_LETTERS]) for text in mended[0])
    return f"UTF-8 that was encoded twice: {line!r} was {one!r}. Export it again as UTF-8"


def _read_once(line: str) -> str:
    """Undo a second encoding; '' if there was none: other letters are hardly ever UTF-8 then."""
    for name in _READ_AS:
        try:
            return line.encode(name).decode()
        except UnicodeError:
            continue
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
