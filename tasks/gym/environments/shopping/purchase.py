"""One purchase: a shopper's turns, the tools that answer them, and how it ended.

A turn makes one call; of several the first is carried out. The tools are those of EComAgentBench
that need no reviews and run no program: search, filter, details, ratings, store, profile, question
and recommendation, which ends the purchase. It also ends with the second turn in a row without a
call and with MAX_CALLS calls.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tasks.gym.environments.shopping.catalogue import Customer, Shop, Slot, listed
from tasks.gym.environments.shopping.wishes import Product, is_met, words

MAX_CALLS = 100
MAX_QUESTION = 100
"""Characters of a question."""
MAX_FILTERED = 10
RULES = (
    "You buy for a customer. Find the one product that meets all wishes. Some wishes are in the "
    "request, some in the profile, and some the customer tells only when asked. Make one call per "
    "turn, and end with recommend_product."
)
_REMINDER = "Make a call, or end with recommend_product."
_ONE_CALL = "Only the first call of a turn counts: make one per turn."
_STRING = {"type": "string"}
_NUMBER = {"type": "integer"}


def _tool(name: str, about: str, required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": about,
        "parameters": {
            "type": "object",
            "properties": {**required, **optional},
            "required": list(required),
        },
    }


TOOLS = (
    _tool(
        "search_products",
        "products with all these words in the title",
        {"query": _STRING},
        page=_NUMBER,
    ),
    _tool(
        "filter_by_attribute",
        f"those of at most {MAX_FILTERED} products whose attribute contains a value",
        {
            "product_ids": {"type": "array", "items": _STRING},
            "attribute_name": _STRING,
            "attribute_value": _STRING,
        },
    ),
    _tool("get_product_details", "attributes and price of a product", {"product_id": _STRING}),
    _tool("get_product_review_stats", "ratings of a product", {"product_id": _STRING}),
    _tool("get_store_products", "products of a store", {"store_name": _STRING}, page=_NUMBER),
    _tool("get_user_profile", "profile of the customer", {}),
    _tool(
        "ask_user", f"ask the customer, in at most {MAX_QUESTION} characters", {"question": _STRING}
    ),
    _tool(
        "recommend_product",
        "the answer; ends the purchase",
        {"product_id": _STRING, "reasoning": _STRING},
    ),
)
"""As a server's `tools`, without their wrapper."""


@dataclass(frozen=True)
class Result:
    """How a purchase ended, with what EComAgentBench's metrics count."""

    id: str
    intent: str
    recommended: str | None
    is_target: bool
    wishes: Sequence[Mapping[str, Any]]
    """Id, kind, source and `met` of every wish: None if undecided; without a product False."""
    finished: bool
    calls: int
    questions: int
    profiles: int

    @property
    def is_right(self) -> bool | None:
        """The target, or a product that meets all wishes; None if that is not decided by rule."""
        met = [wish["met"] for wish in self.wishes]
        if self.is_target or (met and all(met)):
            return True
        return None if None in met and False not in met else False


@dataclass
class Purchase:
    """A purchase in progress."""

    shop: Shop
    customer: Customer
    calls: int = 0
    questions: int = 0
    profiles: int = 0
    recommended: str | None = None
    finished: bool = False
    _silent: int = 0
    _answered: set[Slot] = field(default_factory=set)

    def answer(self, calls: Sequence[Mapping[str, Any]] | None) -> list[dict[str, str]]:
        """Answer a turn by messages; none once the purchase has ended.

        Args:
            calls: name and parameters of each call; None or empty for a turn without one.
        """
        if not calls:
            self._silent += 1
            self.finished = self._silent > 1
            return [] if self.finished else [{"role": "user", "content": _REMINDER}]
        self._silent, self.calls = 0, self.calls + 1
        name, parameters = str(calls[0]["name"]), calls[0]["parameters"]
        try:
            reply = self._carry_out(name, parameters)
        except (KeyError, TypeError, ValueError) as error:
            reply = {"error": f"{name}: {type(error).__name__} {error}"[:200]}
        if self.finished or self.calls >= MAX_CALLS:
            self.finished = True
            return []
        messages = [{"role": "tool", "content": json.dumps(reply, ensure_ascii=False)}]
        return messages + ([{"role": "user", "content": _ONE_CALL}] if len(calls) > 1 else [])

    def result(self) -> Result:
        """Judge what was recommended so far, by rule."""
        product = self.shop.products.get(self.recommended or "")
        met = [
            {
                "id": wish.id,
                "type": wish.kind,
                "info_source": wish.source,
                "met": product is not None and is_met(wish, product, self.customer.voucher),
            }
            for wish in self.customer.wishes
        ]
        return Result(
            id=self.customer.id,
            intent=self.customer.intent,
            recommended=self.recommended,
            is_target=product is not None and product.product_id == self.customer.target.product_id,
            wishes=met,
            finished=self.finished,
            calls=self.calls,
            questions=self.questions,
            profiles=self.profiles,
        )

    def _carry_out(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        tool = self._tools().get(name)
        if tool is None:
            raise ValueError("no such tool")
        return tool(parameters)

    def _tools(self) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
        return {
            "search_products": lambda call: _page(self.shop.search(str(call["query"])), call),
            "get_store_products": lambda call: _page(
                self.shop.of_store(str(call["store_name"])), call
            ),
            "filter_by_attribute": lambda call: {"product_ids": self._filtered(call)},
            "get_product_details": self._details,
            "get_product_review_stats": self._ratings,
            "get_user_profile": self._profile,
            "ask_user": self._ask,
            "recommend_product": self._recommend,
        }

    def _details(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        product = asdict(self.shop.products[str(parameters["product_id"])])
        del product["average_rating"], product["rating_number"]
        return {"product": product}

    def _ratings(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        product = self.shop.products[str(parameters["product_id"])]
        return {"average_rating": product.average_rating, "rating_number": product.rating_number}

    def _profile(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.profiles += 1
        return {"profile": self.customer.profile}

    def _ask(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self.questions += 1
        return {"user_response": self._reply(str(parameters["question"]))}

    def _recommend(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self.recommended, self.finished = str(parameters["product_id"]), True
        return {}

    def _filtered(self, parameters: Mapping[str, Any]) -> list[str]:
        name, value = str(parameters["attribute_name"]), str(parameters["attribute_value"]).lower()
        kept = []
        for key in list(parameters["product_ids"])[:MAX_FILTERED]:
            product = self.shop.products.get(str(key))
            attribute = product and product.attribute(f"details.{name}")
            if attribute and value in attribute.lower():
                kept.append(str(key))
        return kept

    def _reply(self, question: str) -> str:
        """Tell what most keywords of the question ask for, of what is not told yet."""
        if self.questions > self.customer.max_questions:
            return "That was one question too many."
        if len(question) > MAX_QUESTION:
            return f"Please ask in at most {MAX_QUESTION} characters."
        open_slots = [slot for slot in self.customer.slots if slot not in self._answered]
        best = max(open_slots, key=lambda slot: _asked_for(slot, question), default=None)
        if best is None or _asked_for(best, question) == 0:
            return self.customer.default_reply
        self._answered.add(best)
        return best.reply


def _page(products: Sequence[Product], parameters: Mapping[str, Any]) -> dict[str, Any]:
    page = int(parameters.get("page", 0))
    return {"products": listed(products, page), "found": len(products)}


def _asked_for(slot: Slot, question: str) -> int:
    """Count keywords: 2 for one that stands in the question, 1 for one that shares a long word."""
    text, asked = question.lower(), {word for word in words(question) if len(word) > 2}
    keywords = [keyword.lower() for keyword in slot.keywords]
    whole = sum(keyword in text for keyword in keywords)
    part = sum(
        keyword not in text and any(keyword in word or word in keyword for word in asked)
        for keyword in keywords
    )
    return 2 * whole + part
