"""Solve rates and bands are complete, or refused with the line or the name that is wrong."""

import json

import pytest
from pydantic import ValidationError

from data_schemas.pass_rates import PassRateBand, SolveRate
from tasks.errors import DataError
from tasks.formats.solve_rates import check_bands, read_bands, read_rates, write_rates

RATE = {
    "problem": "shop/1",
    "source": "shop",
    "source_row": "a" * 64,
    "gold": '{"value":"5"}',
    "model": "small",
    "samples": 4,
    "scored": 3,
    "solved": 1,
}
BAND = {"source": "shop", "model": "small", "lowest": 0.25, "highest": 0.75}


def written(path, *records):
    path.write_text("\n".join(map(json.dumps, records)) + "\n\n")
    return path


def test_rates_are_read_back_by_problem_and_model(tmp_path):
    answered = {"model": "large", "scored": 0, "solved": 0}
    changed = {"model": "large", "gold": '{"value":"6"}', "scored": 4, "solved": 4}
    rates = [SolveRate.model_validate(RATE | change) for change in ({}, answered, changed)]

    write_rates(tmp_path / "rates", rates)
    first, second = read_rates([tmp_path / "rates"]).items()

    assert (("shop/1", "a" * 64, '{"value":"5"}'), {"small": 1 / 3, "large": None}) == (
        first[0],
        first[1].rates,
    )
    assert ('{"value":"6"}', {"large": 1.0}) == (second[0][2], second[1].rates)


@pytest.mark.parametrize(
    "counts", [{"solved": 4}, {"scored": 5}, {"solved": -1}, {"samples": 0, "scored": 0}]
)
def test_counts_that_give_no_rate_from_0_to_1_are_refused_with_the_line(tmp_path, counts):
    path = written(tmp_path / "rates", RATE, RATE | {"problem": "shop/2"} | counts)

    with pytest.raises(DataError, match=r"line 2: .*Correct it"):
        read_rates([path])


def test_a_problem_and_model_that_are_listed_twice_are_refused_even_in_two_files(tmp_path):
    one, two = (written(tmp_path / name, RATE) for name in ("one", "two"))

    with pytest.raises(DataError, match="two, line 1: shop/1 has a solve rate of small already"):
        read_rates([one, two])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"highest": 1.5}, "highest: Input should be less than or equal to 1"),
        ({"lowest": -0.1}, "lowest: Input should be greater than or equal to 0"),
        ({"lowest": "nan"}, "lowest: "),
        ({"lowest": 0.8}, "lowest is 0.8, above highest, 0.75"),
        ({"hihgest": 1}, "hihgest: Extra inputs"),
    ],
)
def test_a_band_outside_of_0_to_1_is_refused_with_its_line(tmp_path, change, message):
    with pytest.raises(DataError, match=f"line 1: .*{message}"):
        read_bands([written(tmp_path / "bands", BAND | change)])


def test_two_bands_of_a_source_and_model_are_refused(tmp_path):
    with pytest.raises(DataError, match="line 3: shop has a band of small already"):
        read_bands([written(tmp_path / "bands", BAND, BAND | {"model": "large"}, BAND)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "shp"}, r"the source 'shp'. Did you mean `shop`\? .*trained on: home, shop."),
        ({"model": "smal"}, r"of shop names the model 'smal'. Did you mean `small`\? .*: small."),
        ({"source": "home"}, "of home names the model 'small'. .* of home: none"),
    ],
)
def test_a_band_of_an_unknown_source_or_model_is_refused_with_what_there_is(
    tmp_path, change, message
):
    bands = read_bands([written(tmp_path / "bands", BAND | change)])

    with pytest.raises(DataError, match=message):
        check_bands(bands, {"shop": {"small"}, "home": set()})


def test_the_limits_of_a_band_default_to_all_rates():
    assert "0 to 1" == PassRateBand(source="shop", model="small").limits
    with pytest.raises(ValidationError, match="model"):
        PassRateBand.model_validate({"source": "shop"})
