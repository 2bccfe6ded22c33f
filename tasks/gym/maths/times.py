"""Times of the day, as a gold that is one is answered: `7:00 PM`, `7 p.m.`, `19:00`, `19h`.

A time is written `19:00`. One with neither am nor pm nor a word for a part of the day is written as
it stands; `7:00` may be meant by `7:00 PM`, and `19:00` by nothing else.
"""

import re

_PARTS = {
    "am": "am|pagi|上午|早上|sáng|de la mañana|da manhã|du matin|morgens|ng umaga",
    "pm": "pm|malam|petang|sore|下午|晚上|chiều|tối|de la tarde|de la noche|da tarde|da noite|"
    "du soir|de l'après-midi|nachmittags|abends|ng hapon|ng gabi",
}
_PART = "|".join(_PARTS.values())
_HOUR_SIGN = r"(?:[:.]|\s?(?:h|[時时点點]|giờ|uhr)\s?)"
# "7 pm", "7:00 pm", "19h30", "下午7点30分", "pukul 19.30", "7 giờ 30 phút tối", "19:30 น."
_TIME = re.compile(
    rf"(?:(?:pukul|jam|lúc|às|a las|à|um|alas|เวลา)[\s-])?(?P<before>{_PART})?\s?"
    r"(?P<hour>\d{1,2})"
    rf"(?P<sign>{_HOUR_SIGN})?(?P<minute>[0-5]\d)?\s?(?:分|phút|uhr|น|hrs|wib|wita|wit)?\.?\s?"
    rf"(?P<behind>{_PART})?",
    re.IGNORECASE,
)
# "p.m."
_DOTTED = re.compile(r"([ap])\.\s?m\.?", re.IGNORECASE)
_IN_TEXT = re.compile(rf"(?<![\d.,:])(?:{_TIME.pattern})(?!\d|[A-Za-z]|:)", re.IGNORECASE)
# "\text{ PM}", and the mark that `parse` puts before a unit
_LAYOUT = re.compile(r"\\(?:text|mathrm)\s?\{|[{}$~\ue000]|\\[,;: ]")


# "7 giờ rưỡi", "7点半"
_AND_A_HALF = re.compile(r"(?<![\d.,:])(\d{1,2})\s?(?:giờ|[時时点點])\s?(?:rưỡi|半)", re.IGNORECASE)
# "19 giờ 30 phút", "7点30分", which elsewhere are a duration in minutes
_IN_TWO_UNITS = re.compile(
    r"(?<![\d.,:])(\d{1,2})\s?(?:giờ|[時时点點])\s?([0-5]?\d)\s?(?:phút|分)(?![钟鐘])",
    re.IGNORECASE,
)
_NAMES_HALF = re.compile(
    rf"(?<![^\W\d_])(?:{_PART}|[ap]\.\s?m|morning|afternoon|evening|noon|\w*night)(?![a-z])|"
    "上午|早上|下午|晚上|中午|凌晨|傍晚|เช้า|บ่าย|เย็น|เที่ยง|ทุ่ม|trưa",
    re.IGNORECASE,
)


def times_in_digits(text: str) -> str:
    """Write `19 giờ 30 phút` and `7点半` as 19:30 and 7:30."""
    text = _AND_A_HALF.sub(r"\1:30", text)
    return _IN_TWO_UNITS.sub(lambda match: f"{match[1]}:{int(match[2]):02}", text)


def names_half(text: str) -> bool:
    """Say whether a text speaks of a part of the day, so that 7:00 may be in the evening."""
    return _NAMES_HALF.search(text) is not None


def time_in(sentence: str) -> str:
    """Return the one time in a sentence; '' without one, and with several."""
    found = (match[0] for match in _IN_TEXT.finditer(_DOTTED.sub(r"\1m", sentence)))
    times = [text for text in found if time_of(text)[0]]
    return times[0] if len(times) == 1 else ""


def time_of(text: str, *, bare_hour: bool = False) -> tuple[str, str]:
    """Return the time that a text is, and `am`, `pm` or ''; two empty texts for another text.

    Args:
        text: an answer, normalised.
        bare_hour: a number alone is an hour, too.
    """
    text = _DOTTED.sub(r"\1m", re.sub(r"\s+", " ", _LAYOUT.sub(" ", text)))
    match = _TIME.fullmatch(text.strip(" ."))
    if match is None or (match["minute"] and not match["sign"]):
        return "", ""
    word = (match["before"] or match["behind"] or "").casefold()
    part = next((name for name, words in _PARTS.items() if word in words.split("|")), "")
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    named = part and (0 < hour <= 12)
    if part and (not named or (hour == 12 and word != part)):
        return "", ""  # 12 at night may be noon or midnight
    if hour > 24 or not (part or match["sign"] or bare_hour):
        return "", ""
    hour = hour % 12 + 12 * (part == "pm") if part else hour % 24
    return f"{hour}:{minute:02}", part
