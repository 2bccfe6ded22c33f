"""Whether a product meets a wish, decided by rule.

Source: EComAgentBench (arXiv 2606.17698), whose judge is a language model that is given rules in
words. Its kinds of wish are decided here by these rules, but for opinions of reviewers, which no
row carries. Differs: a value meets a wish if it contains all its words next to each other, so that
"1 GB" is not met by "11 GB", and "made of TPU" is no "Thermoplastic Polyurethane".
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SOURCES = ("query", "persona", "clarification")
"""Where a shopper can learn a wish: from the first message, the profile, or by asking."""
KINDS = (
    "attribute_match",
    "numeric_range",
    "entity_match",
    "negative_attribute",
    "budget_match",
    "store_match",
    "review_opinion",
)
_WORD = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+")
_COMPARED = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
}


@dataclass(frozen=True)
class Product:
    """A product of the catalogue."""

    product_id: str
    title: str
    store: str = ""
    main_category: str = ""
    price: float | None = None
    """In the currency of the catalogue."""
    average_rating: float | None = None
    rating_number: int | None = None
    features: tuple[str, ...] = ()
    details: Mapping[str, str] | None = None
    """Attributes by name."""

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> "Product":
        """Read a product of the benchmark; what is null there is absent here.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        details = fields.get("details") or {}
        return cls(
            product_id=str(fields["product_id"]),
            title=str(fields["title"]),
            store=str(fields.get("store") or ""),
            main_category=str(fields.get("main_category") or ""),
            price=_number(fields.get("price")),
            average_rating=_number(fields.get("average_rating")),
            rating_number=None
            if fields.get("rating_number") is None
            else int(fields["rating_number"]),
            features=tuple(map(str, fields.get("features") or ())),
            details={str(name): _text(value) for name, value in details.items()},
        )

    def attribute(self, field: str) -> str | None:
        """Return a field as text, `details.NAME` whatever the case of the name; None if absent."""
        section, _, name = field.partition(".")
        if section == "details":
            found = {key.casefold(): value for key, value in (self.details or {}).items()}
            return found.get(name.casefold())
        value = getattr(self, field, None)
        return str(value) if isinstance(value, str | int | float) else None


@dataclass(frozen=True)
class Wish:
    """One thing that the product must meet: a rubric of the benchmark."""

    id: str
    kind: str
    field: str
    expected: Any
    source: str

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> "Wish":
        """Read a rubric.

        Raises:
            KeyError: a field is missing.
            ValueError: its kind or source is unknown.
        """
        wish = cls(
            id=str(fields["id"]),
            kind=fields["type"],
            field=str(fields["field"]),
            # The words of a title are those of the concept, however the customer paraphrases it.
            expected=fields.get("canonical_entity") or fields["expected_value"],
            source=fields.get("info_source", "query"),
        )
        if wish.kind not in KINDS or wish.source not in SOURCES:
            raise ValueError(f"{wish.kind} from {wish.source}")
        return wish


def is_met(wish: Wish, product: Product, voucher: Mapping[str, Any] | None = None) -> bool | None:
    """Say whether a product meets a wish; None for opinions, which no rule can decide.

    What the product does not say is not met.
    """
    if wish.kind == "review_opinion":
        return None
    if wish.kind == "budget_match":
        return product.price is not None and price_after(product.price, voucher) <= wish.expected
    if wish.kind == "entity_match":
        return _singular(words(str(wish.expected))) <= _singular(words(product.title))
    return _RULES[wish.kind](wish, product)


def _attribute_met(wish: Wish, product: Product) -> bool:
    value = product.attribute(wish.field)
    texts = product.features if value is None else (value,)
    parts = [part for part in re.split("[,;]", str(wish.expected)) if words(part)]
    return bool(parts) and all(any(_has(text, part) for text in texts) for part in parts)


def _exclusion_met(wish: Wish, product: Product) -> bool:
    value = product.attribute(wish.field)
    excluded = wish.expected if isinstance(wish.expected, list) else [wish.expected]
    return value is not None and not any(_has(value, str(one)) for one in excluded)


def _range_met(wish: Wish, product: Product) -> bool:
    number = _first_number(product.attribute(wish.field) or "")
    return number is not None and _in_range(number, wish.expected)


_RULES = {
    "attribute_match": _attribute_met,
    "negative_attribute": _exclusion_met,
    "numeric_range": _range_met,
    "store_match": lambda wish, product: words(product.store) == words(str(wish.expected)),
}


def price_after(price: float, voucher: Mapping[str, Any] | None) -> float:
    """Return what a product costs with a voucher, to the cent.

    A voucher takes a fixed amount or a capped share off a price that reaches its threshold. Of
    tiers the active one counts; stacked coupons apply in their order, each to what is left.
    """
    if not voucher:
        return round(price, 2)
    coupons: Sequence[Mapping[str, Any]] = voucher.get("coupons") or [voucher]
    if tiers := voucher.get("tiers"):
        coupons = [tier for tier in tiers if tier.get("tier") == voucher.get("active_tier", 1)]
    for coupon in coupons:
        if price < (coupon.get("threshold") or 0.0):
            continue
        off = coupon.get("face_value")
        if off is None:
            off = price * (coupon.get("discount") or 0.0)
            cap = coupon.get("cap")
            off = off if cap is None else min(off, cap)
        price = round(price - off, 2)
    return round(price, 2)


def words(text: str) -> list[str]:
    """Split a text into numbers and words, without case and signs."""
    return _WORD.findall(text.casefold())


def _has(text: str, phrase: str) -> bool:
    inside, wanted = words(text), words(phrase)
    size = len(wanted)
    return size > 0 and any(inside[n : n + size] == wanted for n in range(len(inside) - size + 1))


def _singular(found: list[str]) -> set[str]:
    return {word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found}


def _in_range(value: float, expected: Any) -> bool:
    match expected:
        case {"value": bound, "op": str(sign)} if sign in _COMPARED:
            return _COMPARED[sign](value, bound)
        case {"min": low, "max": high} | [low, high]:
            return low <= value <= high
        case {"min": bound} | {"max": bound}:
            return value >= bound if "min" in expected else value <= bound
        case _:
            return value == expected


def _first_number(text: str) -> float | None:
    found = re.search(r"\d[\d,]*(?:\.\d+)?", text)
    return float(found[0].replace(",", "")) if found else None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
