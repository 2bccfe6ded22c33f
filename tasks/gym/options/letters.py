"""Letters behind an announcement that are also words: `Answer: A no` is A, `is a number` is not."""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence

from tasks.algorithms.folding import of_one_width
from tasks.gym.denials import WINDOW, fold
from tasks.gym.options.announcements import CLAUSE_END, HEADING, MARKER, REVERSED, SENTENCE
from tasks.gym.options.mentions import ARTICLES, WORD_LETTERS, pattern_of

# "A no" behind "Answer: ", "{A} 0" behind "\\boxed"; no "A's"
_BEHIND_MARKER = re.compile(
    r"[\s(*_{\[\"]{0,6}(?P<letter>[aeiouyAEIOUY])(?![a-zA-Z0-9_\u00c0-\u024f\u1e00-\u1eff'\u2019])"
)
_MAY_BE_LETTER = re.compile(r"(?<![a-zA-Z0-9])(?:[aeiouyAEIOUY](?![a-zA-Z0-9_'\u2019])|[a-zA-Z]\d)")
"""Without one of these no announcement is before a letter that is a word, or glued to a digit."""
_GLUED = re.compile(r"[\s(*_{\[\"]{0,6}(?P<word>(?P<letter>[a-zA-Z])\d\w*)")  # "Answer: C0"
# "Resposta: A alternativa B"; "Resposta: A Resposta: B" announces twice
_ARTICLE_OF_OPTION = re.compile(
    r"\s(?:resposta|gabarito|opção|alternativa|escolha|letra|melhor|única|mais|corret[ao]|cert[ao])"
    r"(?!\w)(?!(?: \w+)?\s*:)"
)
# "a number", "é a C"
_WORD_BEHIND = re.compile(r"[ \t]+[(*_]{0,4}[^\W\d_\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
# "Answer: A close reading shows B"
_NOUN_BEHIND = re.compile(
    r"[ \t]+(?!(?:the|it|this|that|its|they|we|you|these|no|not|nor|so|then|thus|ok|yes|for|of|to|"
    r"oh)(?!\w))[a-z]{2}"
)
_LETTER_BEHIND = re.compile(r"[ \t]+[(*_]{0,4}[a-zA-Z](?!\w)")


def divide_letters(text: str, options: Sequence[Collection[str]]) -> tuple[str, set[str]]:
    """Divide announcements behind a competing letter that is also a word: `Answer: A no` is A.

    A capital is the option, as is any letter behind a colon; in `the answer is a number` it is an
    article, as it is before the wording of an option: `Answer: A blue box`. Also return the letters
    of which that cannot be said: `the answer is a ok`, `Answer: A close reading shows B`.
    """
    names = set[str]().union(*options)
    letters = WORD_LETTERS.intersection(names)
    competing = letters.intersection(set[str]().union(*options[1:]))
    text = of_one_width(text)
    if not _MAY_BE_LETTER.search(text) or all(len(name) > 1 for name in names):
        return text, set()
    places = list[int]()
    lowered = _lowered(text)
    markers = (*MARKER.finditer(lowered), *HEADING.finditer(lowered))
    unclear = _glued_letters(text, markers, names)
    starts = sorted(marker.start() for marker in markers)
    for marker in markers:
        found = _BEHIND_MARKER.match(text, marker.end())
        if found is None or (letter := found["letter"].casefold()) not in letters:
            continue
        following = text[found.end() : found.end() + WINDOW]
        sentence = SENTENCE.split(following.lstrip("\n"), maxsplit=1)[0]
        clause = fold(CLAUSE_END.split(sentence, maxsplit=1)[0])
        if _ARTICLE_OF_OPTION.match(following) or _names_wording(f"{letter} {clause}", names):
            continue
        is_article, is_unclear = _is_article(marker[0], found["letter"], following)
        if is_unclear or (is_article and text.islower() and not _LETTER_BEHIND.match(following)):
            unclear.add(letter)
        if is_article:
            continue
        if pattern_of(letter).match(f"{letter} {clause}"):
            continue
        if letter in competing:
            places.append(found.end())
        next_marker = bisect_left(starts, found.end())
        end = (*starts[next_marker : next_marker + 1], len(text))[0]
        unclear |= _conclusions(letter, sentence[: end - found.end()], names)
    for place in sorted(places, reverse=True):
        text = f"{text[:place]} | {text[place:]}"
    return text, unclear


def _lowered(text: str) -> str:
    """Return a text in lower case with every place kept: the Turkish capital of i would be two."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char if len(char.lower()) > 1 else char.lower() for char in text)


def _names_wording(clause: str, names: Collection[str]) -> bool:
    return any(len(name) > 1 and pattern_of(name).search(clause) for name in names)


def _glued_letters(text: str, markers: Sequence[re.Match[str]], names: Collection[str]) -> set[str]:
    """Return the letters of options that begin an announced word that is none: `Answer: C0`."""
    words = [_GLUED.match(text, marker.end()) for marker in markers]
    glued = {fold(word["word"]) for word in words if word}
    return {word[0] for word in glued if word[0] in names and word not in names}


def _is_article(marker: str, letter: str, following: str) -> tuple[bool, bool]:
    """Say whether a letter behind a marker is an article, and whether it may as well be an option.

    Behind a verb a letter before a word is, `is a number`, `é a C`; behind a colon one before a
    letter may be, `Resposta: A C`.
    """
    verb = marker.rstrip(" *_")[-1]
    is_followed = _LETTER_BEHIND.match(following) is not None
    if verb.isalpha() and verb < "\u0250":
        return letter in ARTICLES and _WORD_BEHIND.match(following) is not None, False
    return letter in ARTICLES and is_followed, is_followed


def _conclusions(letter: str, behind: str, names: Collection[str]) -> set[str]:
    """Return the options between which `a close reading shows b` leaves the choice; at least two.

    "A red box. B is right" is no such sentence but a second announcement.
    """
    if letter != "a" or _NOUN_BEHIND.match(behind) is None:
        return set()
    folded = fold(behind)
    named = {name for name in names if name != "a" and pattern_of(name).search(folded)}
    return {"a", *named} if named and not REVERSED.search(folded) else set()
