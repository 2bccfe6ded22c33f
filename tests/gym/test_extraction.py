"""Fields of a JSON answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.extraction import json_objects, same_field, verify
from tasks.gym.protocol import CONTROL
from tasks.gym.table import score_batch
from tests.tables import for_each
from tests.timing import timed

GOLD = {"fields": {"brand": "Acme", "size": 4, "colors": ["red", "blue"], "new": True}}
RIGHT = {"brand": "acme ", "size": 4.0, "colors": ["blue", "red"], "new": True}


def score(problem, gold: object, response: str) -> float | None:
    return verify(problem("extraction", gold), response).score


def test_types_count_but_order_case_and_fences_do_not(problem) -> None:
    for response in (json.dumps(RIGHT), f"Here:\n```json\n{json.dumps(RIGHT, indent=2)}\n```"):
        assert 1.0 == score(problem, GOLD, response)


@for_each(
    ("change", "expected"),
    [
        ({"brand": "Other"}, 3 / 4),
        ({"size": "4"}, 3 / 4),
        ({"new": 1}, 3 / 4),
        ({"colors": ["red"]}, 3 / 4),
        ({"size": "4", "new": 1, "brand": None, "colors": {}}, 0.0),
        ({"weight": 3}, 1 - 1 / 5),
        ({"size": 5, "weight": 3, "height": 2}, 3 / 4 - 2 / 5),
        ({f"extra{n}": n for n in range(9)}, 0.0),
    ],
)
def test_each_wrong_field_costs_its_share_and_each_extra_one_a_fifth(
    problem, change: dict[str, object], expected: float
) -> None:
    assert expected == pytest.approx(score(problem, GOLD, json.dumps({**RIGHT, **change})))


def test_a_missing_field_is_a_wrong_one(problem) -> None:
    assert 1 / 4 == score(problem, GOLD, '{"brand": "ACME"}')


@for_each(
    ("response", "reason"),
    [
        ("no braces", "no_json"),
        ('{"brand": "Acme"', "no_json"),
        ("{'brand': 'Acme'}", "no_json"),
        ('{"size": NaN}', "no_json"),
        ("[1, 2]", "no_json"),
        ("<think>{}", "no_answer"),
    ],
)
def test_an_answer_without_json_scores_zero(problem, response: str, reason: str) -> None:
    verdict = verify(problem("extraction", GOLD), response)

    assert (0.0, reason) == (verdict.score, verdict.reason)


def test_a_schema_violation_scores_zero_and_names_the_place(problem) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 10}}}
    gold = {"fields": {"size": 4, "brand": "A"}, "schema": schema}
    verdict = verify(problem("extraction", gold), '{"size": 11, "brand": "A"}')

    assert (0.0, "schema_invalid") == (verdict.score, verdict.reason)
    assert "$.size" in verdict.detail


def test_every_price_is_a_multiple_of_a_cent_and_no_tenth_of_one(problem) -> None:
    schema = {"properties": {"price": {"type": "number", "multipleOf": 0.01}}}
    for cents in range(1, 1000):
        gold = {"fields": {"price": cents / 100}, "schema": schema}
        assert 1.0 == score(problem, gold, json.dumps(gold["fields"])), gold
    gold = {"fields": {"price": 0.07}, "schema": schema}
    assert "schema_invalid" == verify(problem("extraction", gold), '{"price": 0.071}').reason
    assert "wrong" == verify(problem("extraction", gold), '{"price": 0.14}').reason


def test_a_multiple_holds_at_any_size(problem) -> None:
    gold = {"fields": {"n": 1e300}, "schema": {"properties": {"n": {"multipleOf": 0.01}}}}
    assert 1.0 == score(problem, gold, '{"n": 1e300}')


def test_a_broken_schema_is_an_abstention(problem) -> None:
    gold = {"fields": {"size": 4}, "schema": {"type": "nonsense"}}
    verdict = verify(problem("extraction", gold), '{"size": 4}')

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


def test_the_tolerance_is_relative_and_for_numbers_only(problem) -> None:
    gold = {"fields": {"price": 200.0, "sku": "200"}, "tolerance": 0.01}

    assert 1.0 == score(problem, gold, '{"price": 202, "sku": "200"}')
    assert 0.5 == score(problem, gold, '{"price": 203, "sku": "200"}')
    assert 0.5 == score(problem, gold, '{"price": 200, "sku": "201"}')


@pytest.mark.parametrize(
    "response",
    [
        '{"brand": "Other", "brand": "Acme", "size": 4, "colors": ["red", "blue"], "new": true}',
        '{"brand": "Acme", "brand": "Acme", "size": 4, "colors": ["red", "blue"], "new": true}',
        '{"note": {"x": 1, "x": 1}, "brand": "Acme"}',
        '{"brand": [{"x": [{"y": 1, "y": 2}]}]}',
    ],
)
def test_a_key_that_stands_twice_at_any_depth_is_no_answer(problem, response: str) -> None:
    verdict = verify(problem("extraction", GOLD), response)
    later = verify(problem("extraction", GOLD), f"{response} {json.dumps(RIGHT)}")

    assert (0.0, "repeated_key") == (verdict.score, verdict.reason)
    assert 0.0 == later.score


def test_what_is_inside_an_object_with_a_repeated_key_is_not_read(problem) -> None:
    right = json.dumps(RIGHT)

    assert 0.0 == score(problem, GOLD, f'{{"a": {right}, "a": {right}}}')


def test_a_flood_of_objects_is_the_response_s_fault(problem) -> None:
    verdict = verify(problem("extraction", GOLD), '{"size": 4}' * 200)

    assert (0.0, "response_fault:flooded") == (verdict.score, verdict.reason)


def test_a_wrong_object_cannot_be_repaired_by_a_second_one(problem) -> None:
    right = json.dumps(RIGHT)
    wrong = json.dumps({**RIGHT, "brand": "Other"})

    verdict = verify(problem("extraction", GOLD), f"{wrong}\n{right}")

    assert (3 / 4, "several_answers") == (verdict.score, verdict.reason)
    assert 1.0 == score(problem, GOLD, f'Input: {{"text": "x"}}\n{right}')


def test_objects_are_outermost_and_in_order() -> None:
    text = 'a {"x": {"y": 1}} b {broken {"z": 2} c'

    assert [({"x": {"y": 1}}, True), ({"z": 2}, True)] == list(json_objects(text))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_equals_itself_and_no_other_type(value: object) -> None:
    assert same_field(value, value, 0.0)
    assert not same_field(value, {"other": value, "type": 0}, 0.0) or isinstance(value, dict)
    assert same_field(value, str(value), 0.0) == isinstance(value, str)


@given(st.permutations(["a", "b", "a", "c"]))
def test_lists_are_compared_without_order_but_with_counts(items: list[str]) -> None:
    assert same_field(["a", "a", "b", "c"], items, 0.0)
    assert not same_field(["a", "b", "b", "c"], items, 0.0)


@pytest.mark.parametrize("unit", ["{", '{"a":', "[", '{"a":1}'])
def test_hostile_repetition_is_read_quickly(problem, unit: str) -> None:
    text = unit * (100_000 // len(unit))

    seconds, _ = timed(lambda: score(problem, GOLD, text), 1.0)
    assert seconds < 1.0


def test_lists_within_a_tolerance_are_matched_as_a_whole() -> None:
    # 1.0 alone would take 1.08 and leave 0.95 to 1.15.
    assert same_field([1.0, 1.15], [1.08, 0.95], 0.1)
    assert not same_field([1.0, 1.15], [1.08, 0.8], 0.1)


def test_a_number_beyond_floats_is_wrong_and_no_error(problem) -> None:
    gold = {"fields": {"price": 1.5}, "tolerance": 0.1}

    assert 0.0 == score(problem, gold, '{"price": 1' + 400 * "0" + "}")
    assert 0.0 == score(problem, gold, '{"price": 1e999}')


WRITABLE = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab ", max_size=3)
FIELDS = st.dictionaries(
    st.sampled_from("abcd"), WRITABLE | st.lists(WRITABLE, max_size=3), min_size=1, max_size=4
)


@given(fields=FIELDS, data=st.data(), space=st.sampled_from(["", " ", "\n\n"]))
def test_order_of_keys_and_space_do_not_matter(problem, fields, data, space) -> None:
    keys = data.draw(st.permutations(sorted(fields)))
    written = json.dumps(
        {key: fields[key] for key in keys}, indent=data.draw(st.sampled_from([0, 3]))
    )

    assert 1.0 == score(problem, {"fields": fields}, f"{space}{written}{space}")


@given(fields=FIELDS, found=FIELDS)
def test_a_second_object_never_gains(problem, fields, found) -> None:
    one = score(problem, {"fields": fields}, json.dumps(found))
    two = score(problem, {"fields": fields}, json.dumps(found) + "\n" + json.dumps(fields))

    assert two <= one or not fields.keys() & found.keys()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/item"},
        {"properties": {"brand": {"$ref": "#/$defs/item"}}},
        {"$ref": "#"},
        {"$ref": "https://example.invalid/schema.json"},
    ],
)
def test_a_schema_that_refers_to_nothing_is_the_gold_s_fault(problem, schema) -> None:
    verdict = verify(problem("extraction", {**GOLD, "schema": schema}), json.dumps(RIGHT))

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
UNUSABLE = {
    "type": {"type": "nonsense"},
    "pattern": {"properties": {"size": {"pattern": "("}}},
    "draft": {"$schema": 5},
    "drafts": {"$schema": []},
    "ref": {"properties": {"size": {"$ref": "#/$defs/item"}}},
    "ref-of-another": {"properties": {"other": {"items": {"$ref": "#/$defs/item"}}}},
    "ref-unused": {"$defs": {"item": {"$ref": "elsewhere.json"}}},
    "ref-draft-7": {"$schema": DRAFT_7, "items": [{"$ref": "#/definitions/x"}]},
    "ref-of-a-ref": {
        "properties": {"other": {"$ref": "#/components/x"}},
        "components": {"x": {"$ref": "#/nowhere"}},
    },
    "ref-to-text": {"title": "x", "properties": {"other": {"$ref": "#/title"}}},
    "ref-to-malformed": {
        "properties": {"other": {"$ref": "#/components/x"}},
        "components": {"x": {"type": "nonsense"}},
    },
    "ref-no-address": {"properties": {"other": {"$ref": "http://["}}},
    "dynamic-ref": {"$dynamicRef": "#nowhere"},
    "loop": {"$ref": "#"},
    "loop-of-a-field": {"properties": {"size": {"$ref": "#/properties/size"}}},
    "loop-of-another": {"properties": {"other": {"$ref": "#/properties/other"}}},
    "loop-all-of": {"$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}},
    "loop-any-of": {"anyOf": [{"required": ["other"]}, {"$ref": "#"}]},
}


@for_each("schema", UNUSABLE.values())
def test_a_schema_that_cannot_be_applied_is_bad_gold_whatever_the_response(problem, schema) -> None:
    bad = problem("extraction", {"fields": {"size": 4}, "schema": schema})
    responses = ['{"size": 4}', '{"other": 1}', "no JSON", "<think>", CONTROL]

    for verdict in score_batch([bad] * len(responses), responses):
        assert (None, "bad_gold") == (verdict.score, verdict.reason)


USABLE = {
    "defs": {"$defs": {"n": {"type": "integer"}}, "properties": {"size": {"$ref": "#/$defs/n"}}},
    "anchor": {"$defs": {"n": {"$anchor": "n"}}, "properties": {"size": {"$ref": "#n"}}},
    "id": {"$id": "https://shop.example/a", "$defs": {"n": {"$id": "n"}}, "items": {"$ref": "n"}},
    "itself": {"properties": {"more": {"$ref": "#"}}, "required": ["size"]},
    "tree": {"$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}, "allOf": [{"$ref": "#/$defs/t"}]},
    "property": {"properties": {"size": {"const": 4}, "$ref": {"type": "string"}}},
    "example": {"examples": [{"$ref": "#/nowhere"}]},
    "true": {"$defs": {"any": True}, "properties": {"size": {"$ref": "#/$defs/any"}}},
    "metaschema": {"$defs": {"meta": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
    "draft-7": {"$schema": DRAFT_7, "$ref": "#/definitions/x", "definitions": {"x": {}}},
    "unknown-draft": {"$schema": "https://shop.example/own", "required": ["size"]},
}


@for_each("schema", USABLE.values())
def test_a_reference_within_the_schema_is_followed(problem, schema) -> None:
    assert 1.0 == score(problem, {"fields": {"size": 4}, "schema": schema}, '{"size": 4}')


@pytest.mark.parametrize("fields", [{"size": 40}, {"size": "4"}, {"brand": "Acme"}])
def test_a_schema_that_refuses_its_own_gold_is_bad_gold_whatever_the_response(
    problem, fields
) -> None:
    schema = {"required": ["size"], "properties": {"size": {"type": "integer", "maximum": 10}}}
    bad = problem("extraction", {"fields": fields, "schema": schema})

    for response in (json.dumps(fields), '{"size": 4}', "no object"):
        verdict = verify(bad, response)
        assert (None, "bad_gold") == (verdict.score, verdict.reason)
        assert "refuses the fields" in verdict.detail


def test_an_answer_too_deep_for_a_sound_schema_is_its_own_fault(problem) -> None:
    gold = {"fields": {"size": 4}, "schema": {"additionalProperties": {"$ref": "#"}}}
    deep = '{"a":' * 400 + "1" + "}" * 400
    verdict = verify(problem("extraction", gold), deep)

    assert (0.0, "response_fault:too_deep") == (verdict.score, verdict.reason)


def test_no_schema_reads_a_file(problem, tmp_path) -> None:
    (tmp_path / "schema.json").write_text("{}")
    gold = {**GOLD, "schema": {"$ref": (tmp_path / "schema.json").as_uri()}}
    verdict = verify(problem("extraction", gold), json.dumps(RIGHT))

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


def test_a_schema_may_refer_to_itself_and_to_the_metaschema(problem) -> None:
    schema = {
        "$defs": {"word": {"type": "string"}},
        "properties": {
            "brand": {"$ref": "#/$defs/word"},
            "extra": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        },
    }

    assert 1.0 == score(problem, {**GOLD, "schema": schema}, json.dumps(RIGHT))
