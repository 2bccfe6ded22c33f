"""A class of the MSC 2020 stands beside a subject that lies within one."""

import re

import pytest

from data_schemas.subjects import CLASSES, msc_of
from tasks.curation.cleaning.classes import with_class

MATH = {
    "Algebra": "",
    "Counting & Probability": "05, 60",
    "Geometry": "51",
    "Intermediate Algebra": "",
    "Number Theory": "11",
    "Prealgebra": "",
    "Precalculus": "",
}
OLYMPIADBENCH = {"Algebra": "", "Combinatorics": "05", "Geometry": "51", "Number Theory": "11"}


@pytest.mark.parametrize("subjects", [MATH, OLYMPIADBENCH], ids=["MATH", "OlympiadBench"])
def test_the_subjects_of_public_sets_have_these_classes(subjects):
    assert subjects == {subject: msc_of(subject) for subject in subjects}


@pytest.mark.parametrize(
    ("subject", "code"),
    [
        ("Mathematics -> Algebra -> Abstract Algebra -> Group Theory", "20"),
        ("Mathematics -> Discrete Mathematics -> Combinatorics -> Arrangements", "05"),
        ("Mathematics -> Geometry -> Differential Geometry -> Curvature", "53"),
        ("Mathematics -> Precalculus -> Trigonometric Functions", ""),
        ("  number theory ", "11"),
        ("", ""),
    ],
)
def test_of_a_path_the_narrowest_level_with_a_class_counts(subject, code):
    assert code == msc_of(subject)


def test_every_class_has_two_digits_and_a_name():
    codes = [code for subject in MATH | OLYMPIADBENCH for code in msc_of(subject).split(", ")]

    assert all(re.fullmatch(r"\d\d", code) for code in CLASSES)
    assert set(codes) - {""} <= CLASSES.keys()


def test_a_class_that_the_source_gives_stays_and_without_a_subject_nothing_is_added():
    assert {"subject": "Geometry", "msc": "52"} == with_class({"subject": "Geometry", "msc": "52"})
    assert {"subject": "Geometry", "msc": "51"} == with_class({"subject": "Geometry", "msc": ""})
    assert {"brand": "Lego"} == with_class({"brand": "Lego"})
