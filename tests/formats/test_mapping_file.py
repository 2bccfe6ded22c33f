"""Mapping files are strict: what is wrong with one is said by name."""

import pytest

from tasks.errors import SettingsError
from tasks.formats.mapping_files import SHIPPED, mapping_of, parse_mapping, shipped_mappings

GOOD = {
    "name": "n",
    "domain": "maths",
    "language": "en",
    "prompt": "{q}",
    "verifier": "final_answer",
    "answer": {"value": "{a}"},
}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"promt": "{q}"}, "promt is not a key of a mapping; did you mean `prompt`?"),
        ({"domain": "math"}, "domain is 'math'; it must be 'maths'"),
        ({"name": "No Name"}, "name is 'No Name'"),
        ({"prompt": "{q"}, "braces hold the name of a column"),
        ({"prompt": "{}"}, "braces hold the name of a column"),
        ({"prompt": "{q} 1}"}, "braces hold the name of a column"),
        ({"prompt": "Add up!"}, "prompt uses no column"),
        ({"answer": {}}, "verifier and answer are given together"),
        ({"verifier": "", "answer": {}}, "rows would become nothing"),
        ({"options": ["a"]}, "options are those of verifier 'choice'"),
        ({"values": {"x": {"1": "a"}}}, "values translates 'x', which no template uses"),
        ({"language": False}, "is False; it must be a valid string"),
    ],
)
def test_a_wrong_key_or_value_is_named(changes, told):
    with pytest.raises(SettingsError) as refused:
        parse_mapping(str(GOOD | changes), "shop.yaml")

    assert told in str(refused.value)
    assert str(refused.value).startswith("mapping shop.yaml: ")


@pytest.mark.parametrize("text", ["a: [", b"\xff\xfe\x00", "\x07"])
def test_what_is_no_yaml_is_refused_in_one_line(text):
    with pytest.raises(SettingsError) as refused:
        parse_mapping(text, "shop.yaml")

    assert str(refused.value).startswith("shop.yaml is not YAML: ")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.yaml cannot be read: No such file"):
        mapping_of(str(tmp_path / "none.yaml"))


def test_a_mapping_of_the_project_has_the_name_of_its_file_and_a_line_about_it():
    for path in SHIPPED.glob("*.yaml"):
        assert path.stem == parse_mapping(path.read_bytes(), path.name).name
        assert path.read_text().startswith("# ")
    assert shipped_mappings()["esci"] == mapping_of("esci")
    assert mapping_of("gsm8k") is None
