"""Wishes and vouchers, with values worked by hand."""

import pytest

from tasks.gym.environments.shopping.wishes import Product, Wish, is_met, price_after
from tests.tables import for_each

PRODUCT = Product.parse(
    {
        "product_id": "P1",
        "title": "Slim phone cases for travel",
        "store": "Phu Quy",
        "price": 40.0,
        "average_rating": 4.0,
        "rating_number": 16,
        "features": ["Sealed with Thermoplastic Polyurethane", "Runs Android 5.0 and iOS 9.0"],
        "details": {
            "Material": "Nylon, Silicone",
            "RAM": "11 GB",
            "Color": "Blue-Green",
            "Rank": {"Cases": 7},
            "Item Weight": "1,310.5 ounces",
        },
    }
)


def met(kind, field, expected, voucher=None):
    return is_met(Wish("r", kind, field, expected, "query"), PRODUCT, voucher)


@for_each(
    ("kind", "field", "expected", "is_so"),
    [
        ("attribute_match", "details.Material", "Nylon", True),
        ("attribute_match", "details.material", "silicone, nylon", True),
        ("attribute_match", "details.Material", "Nylo", False),
        ("attribute_match", "details.RAM", "1 GB", False),
        ("attribute_match", "details.RAM", "11 gb", True),
        ("attribute_match", "details.Operating System", "Android,Ios", True),
        ("attribute_match", "details.Coating", "TPU", False),
        ("attribute_match", "details.Coating", "Polyurethane", True),
        ("attribute_match", "details.Color", "-", False),
        ("negative_attribute", "details.Color", ["red", "yellow"], True),
        ("negative_attribute", "details.Color", ["blue"], False),
        ("negative_attribute", "details.Shape", ["round"], False),
        ("entity_match", "title", "case for phone", True),
        ("entity_match", "title", "phone case", True),
        ("entity_match", "title", "phone charger", False),
        ("store_match", "store", "phu quy", True),
        ("store_match", "store", "phu", False),
        ("numeric_range", "price", {"value": 40, "op": "<"}, False),
        ("numeric_range", "price", {"value": 40, "op": "<="}, True),
        ("numeric_range", "average_rating", {"min": 4.0}, True),
        ("numeric_range", "rating_number", {"min": 20}, False),
        ("numeric_range", "rating_number", [10, 16], True),
        ("numeric_range", "rating_number", {"max": 15}, False),
        ("numeric_range", "details.Item Weight", 1310.5, True),
        ("numeric_range", "details.Height", {"min": 0}, False),
        ("review_opinion", "reviews", {"opinion": "sturdy"}, None),
    ],
)
def test_a_wish_is_decided_by_its_rule(kind, field, expected, is_so):
    assert met(kind, field, expected) is is_so


def test_a_kind_that_no_rule_knows_is_refused():
    row = {"id": "r", "type": "smell_match", "field": "x", "expected_value": "rose"}
    with pytest.raises(ValueError, match="smell_match"):
        Wish.parse(row)


PERCENT = {"discount_type": "percentage", "threshold": 30.0, "discount": 0.2, "cap": 5.0}
FIXED = {"discount_type": "fixed", "threshold": 30.0, "face_value": 4.0}


@for_each(
    ("price", "voucher", "left"),
    [
        (40.0, None, 40.0),
        (40.0, FIXED, 36.0),
        (29.99, FIXED, 29.99),
        (40.0, PERCENT, 35.0),  # a fifth is 8.00, capped at 5.00
        (40.0, {**PERCENT, "cap": None}, 32.0),
        (40.0, {"tiers": [{"tier": 1, **FIXED}, {"tier": 2, **PERCENT}], "active_tier": 1}, 36.0),
        # 40.00 - 5.00 is 35.00, which still reaches the second coupon's threshold
        (40.0, {"coupons": [PERCENT, FIXED]}, 31.0),
        (31.0, {"coupons": [PERCENT, FIXED]}, 26.0),  # 31.00 - 5.00 does not
    ],
)
def test_a_voucher_takes_off_what_its_terms_say(price, voucher, left):
    assert price_after(price, voucher) == left


def test_a_budget_is_compared_with_the_price_after_the_voucher():
    assert met("budget_match", "budget", 36.0) is False
    assert met("budget_match", "budget", 36.0, FIXED) is True
