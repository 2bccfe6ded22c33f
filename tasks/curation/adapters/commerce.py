"""Adapters for e-commerce sets: AE-110k and OA-Mine attributes, PRDECT-ID categories.

Their rows contain no reasoning, so the commerce demonstrations have an empty thought.
"""

import html
import json

from data_schemas.rows import Demonstration, Domain, Message, Parent, Problem, Role
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow, tidy
from tasks.store.files import canonical_json

PRDECT_CATEGORIES = (
    "Animal Care",
    "Automotive",
    "Beauty",
    "Body Care",
    "Books",
    "Camera",
    "Carpentry",
    "Computers and Laptops",
    "Electronics",
    "Food and Drink",
    "Gaming",
    "Health",
    "Household",
    "Kids and Baby Fashion",
    "Kitchen",
    "Men's Fashion",
    "Mother and Baby",
    "Movies and Music",
    "Muslim Fashion",
    "Office & Stationery",
    "Other Products",
    "Party Supplies and Craft",
    "Phones and Tablets",
    "Precious Metal",
    "Property",
    "Sport",
    "Tour and Travel",
    "Toys and Hobbies",
    "Women's Fashion",
)


def ae110k(row: RawRow) -> list[Item]:
    """Read an AE-110k row: attribute values of an AliExpress title."""
    return _attributes("ae110k", row)


def oa_mine(row: RawRow) -> list[Item]:
    """Read an OA-Mine row: attribute values of an Amazon title."""
    return _attributes("oa_mine", row)


def prdect_id(row: RawRow) -> list[Item]:
    """Read a PRDECT-ID row: the category of an Indonesian product name, one of 29.

    The sentiment of the review is not used: with two options it is too easy to guess.
    """
    name = row.text("Product Name")
    category = row.text("Category")
    if category not in PRDECT_CATEGORIES:
        raise BadRow("unknown_category", f"'Category' is {category!r}")
    prompt = (
        f"Pilih satu kategori untuk produk ini.\nProduk: {name}\n"
        f"Kategori: {'; '.join(PRDECT_CATEGORIES)}\nJawab hanya dengan nama kategorinya."
    )
    answer = {
        "correct": [category],
        "others": [[other] for other in PRDECT_CATEGORIES if other != category],
    }
    problem = Problem(
        id=f"prdect_id/{row.text('id')}",
        domain=Domain.CHOICE,
        language="id",
        messages=(Message(role=Role.USER, content=prompt),),
        verifier="choice",
        answer=canonical_json(answer).decode(),
        source="prdect_id",
        source_row=row.source_row,
    )
    facets = {"category": category, "price": str(row.optional("Price"))}
    item = Item(_imitate(problem, category), name, answers=problem)
    return [Item(problem, name, facets=facets), item]


def _attributes(source: str, row: RawRow) -> list[Item]:
    title = html.unescape(row.text("input"))
    fields = _gold_fields(row)
    prompt = (
        f"Extract these attributes of the product as one JSON object: {', '.join(fields)}. "
        f'Write "n/a" for an attribute that the title does not state.\nTitle: {title}'
    )
    problem = Problem(
        id=f"{source}/{row.key}",
        domain=Domain.EXTRACTION,
        language="en",
        messages=(Message(role=Role.USER, content=prompt),),
        verifier="extraction",
        answer=canonical_json({"fields": fields}).decode(),
        source=source,
        source_row=row.source_row,
    )
    facets = {
        "category": str(row.optional("category")),
        "brand": fields.get("Brand Name", ""),
    }
    demonstration = _imitate(problem, json.dumps(fields, ensure_ascii=False))
    return [Item(problem, title, facets=facets), Item(demonstration, title, answers=problem)]


def _gold_fields(row: RawRow) -> dict[str, str]:
    scores = row.gold(row.fields.get("target_scores"))
    if not isinstance(scores, dict) or not scores:
        raise BadRow("missing_field", "'target_scores' is not a non-empty object")
    fields: dict[str, str] = {}
    for name, values in scores.items():
        if not isinstance(values, dict) or not values:
            raise BadRow("missing_field", f"'target_scores.{name}' is not a non-empty object")
        if len(values) > 1:
            # Answers must be unique (Ring-lite's rule), and one of them is often "n/a".
            raise BadRow("several_values", f"'target_scores.{name}' has {sorted(values)}")
        fields[name] = tidy(html.unescape(next(iter(values))))
    return fields


def _imitate(problem: Problem, answer: str) -> Demonstration:
    return Demonstration(
        id=problem.id,
        parent=Parent.COMMERCE,
        domain=problem.domain,
        language=problem.language,
        messages=problem.messages,
        response=f"<think></think>{answer}",
        source=problem.source,
        source_row=problem.source_row,
    )
