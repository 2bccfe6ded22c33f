"""The models of a table of evaluations, as they are named on the command line."""

import pytest

from tasks.errors import SettingsError
from tasks.training.foundation.candidates import parse_candidates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path/to/model", ("model", "path/to/model", "")),
        ("path/to/model/", ("model", "path/to/model/", "")),
        ("", ("shipped", "", "")),
        ("base=", ("base", "", "")),
        ("models:/m@released", ("m@released", "models:/m@released", "")),
        ("s3://bucket/a/b", ("b", "s3://bucket/a/b", "")),
        ("tuned=s3://bucket/a/b", ("tuned", "s3://bucket/a/b", "")),
        ("http://host:8000/v1#org/big", ("org/big", "http://host:8000/v1", "org/big")),
        ("big=https://host/v1/#org/big", ("big", "https://host/v1", "org/big")),
        ("/folder/with=sign", ("with-sign", "/folder/with=sign", "")),
    ],
)
def test_a_model_is_named_by_what_stands_before_the_sign_or_by_the_end_of_its_address(
    text, expected
):
    (one,) = parse_candidates(text)

    assert expected == (one.name, one.address, one.served_as)


def test_several_models_keep_their_order():
    assert ["b", "a", "c"] == [one.name for one in parse_candidates("x/b, a=x/b,http://h/v1#c")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x/a,y/a", "two models are called 'a'"),
        ("http://host/v1", "names no model; write http://host/v1#NAME"),
        ("http://host:port/v1#m", "no base URL"),
        ("http://key:secret@host/v1#m", r"\*\*\*@host"),
    ],
)
def test_what_is_no_model_is_refused_with_an_example(text, message):
    with pytest.raises(SettingsError, match=message) as caught:
        parse_candidates(text)

    assert "secret" not in str(caught.value)
