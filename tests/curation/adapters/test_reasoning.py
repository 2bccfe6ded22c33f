"""What sources of maths problems say besides the problem."""

from pathlib import Path

from tests.curation.adapters.test_table import items


def test_the_subject_that_maths_sets_name_is_a_facet(tmp_path: Path):
    maths = {"problem": "1+1", "answer": "2", "type": " Algebra "}
    olympiad = {"question": "1+1", "final_answer": ["2"], "subfield": "Number Theory"}

    found = [
        items(tmp_path, name, row)[0].facets
        for name, row in (
            ("math_train", maths),
            ("math_train", maths | {"type": None}),
            ("olympiadbench", olympiad),
        )
    ]

    number_theory = {"subject": "Number Theory", "msc": "11"}
    assert [{"subject": "Algebra"}, {}, number_theory] == found
