"""What every page has besides its content: links to the others, contents, scopes of headers.

Pages are files beside each other in a store, so that links are relative: they work from a disk,
from a bucket and in a copied folder.
"""

import re
from collections.abc import Mapping
from html import escape

INDEX = "index.html"
TO_INDEX = {"all executions": f"../{INDEX}"}
"""Links of a page in the folder `reports`."""
_FEWEST = 4
"""Sections from which on a page has a list of contents."""
_HEADER = re.compile(r"<thead>.*?</thead>", re.DOTALL)
_CELL = re.compile(r"<th(?=[\s>])(?! scope)")
_SECTION = re.compile(r'(<section(?: id="[^"]*")?>)<h2(?: id="([^"]*)")?>(.*?)</h2>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>.*?</[^>]+>|<[^>]+>", re.DOTALL)


def with_navigation(html: str, links: Mapping[str, str]) -> str:
    """Add links to other pages, a list of contents to a long page, and the scope of every header.

    Args:
        html: a page with a `<header>`, whose sections begin with `<section><h2>`.
        links: text -> relative address.
    """
    titles: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        text = _TAG.sub("", match[3]).strip()
        slug = match[2] or re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"
        titles[slug] = text
        return f'{match[1]}<h2 id="{slug}">{match[3]}</h2>'

    page = _SECTION.sub(name, html)
    page = _HEADER.sub(lambda match: _CELL.sub('<th scope="col"', match[0]), page)
    page = _CELL.sub('<th scope="row"', page)
    entries = [f'<a href="{escape(place)}">{escape(text)}</a>' for text, place in links.items()]
    others = f'<nav aria-label="other pages">{" ".join(entries)}</nav>' if entries else ""
    contents = ""
    if len(titles) >= _FEWEST:
        items = " ".join(f'<a href="#{slug}">{text}</a>' for slug, text in titles.items())
        contents = f'<nav aria-label="contents">{items}</nav>'
    return page.replace("</header>", f"{others}{contents}</header>", 1)
