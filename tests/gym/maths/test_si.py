from collections import defaultdict

from tasks.gym.maths.final_answer import verify
from tasks.gym.maths.quantities import _PREFIXES, _SCALED, _UNSCALED, is_unit, without_unit
from tests.tables import for_each

QUANTITIES = [
    (r"9.8\,\mathrm{m/s^2}", "m/s^2", "9.8"),
    ("9.8 m/s²", "m s^{-2}", "9.8"),
    (r"9.8 \text{ m}/\text{s}^2", "m/s^2", "9.8"),
    ("10 meters per second.", "m/s", "10"),
    ("5 joules", "J", "5"),
    ("5 Joule", "J", "5"),
    (r"\frac{1}{2}\,\text{J}", "J", r"\frac{1}{2}"),
    (r"3*10^{8}\ \text{m/s}", "m/s", "3*10^8"),
    (r"4\,\Omega", "ohm", "4"),
    (r"20^\circ\text{C}", "celsius", "20"),
    (r"8.31\,\mathrm{J\,mol^{-1}\,K^{-1}}", "J/(mol K)", "8.31"),
    ("8.31 J/mol/K", "J/(mol K)", "8.31"),
    ("250 mL", "milliliter", "250"),
    ("250 milliliters", "ml", "250"),
    (r"5\,\mu\mathrm{F}", "uF", "5"),
    (r"5\ \mathrm{\mu m}", "micrometer", "5"),
    ("5 µs", "μs", "5"),
    ("98.5 MHz", "megahertz", "98.5"),
    ("3 kWh", "kW h", "3"),
    ("12 Nm", "N m", "12"),
    ("1500 rpm", "rev/min", "1500"),
    ("60 mph", "mi/h", "60"),
    ("90 km per hour", "kph", "90"),
    ("90 degrees Celsius", r"^\circ C", "90"),
    (r"45^\circ", "degrees", "45"),
    (r"12\%", "%", "12"),
    ("4.2 light-years", "ly", "4.2"),
    ("13.6 eV", "electronvolt", "13.6"),
]


@for_each(("text", "unit", "number"), QUANTITIES)
def test_a_unit_is_found_in_every_way_of_writing_it(text, unit, number):
    assert number == without_unit(text, unit)


@for_each(
    ("text", "unit"),
    [
        (r"5\text{ N}", "J"),
        ("5 kJ", "J"),
        ("5 cm", "m"),
        ("10 m", "m/s"),
        ("10 s/m", "m/s"),
        (r"300^\circ\text{C}", "K"),
        ("5 mg", "g"),
        ("5 Mg", "mg"),
        ("5 mPa", "MPa"),
        ("5 kW", "kWh"),
        ("5 mM", "mm"),
        ("5 min", "s"),
        ("45 rad", "deg"),
        ("2 pa", "J"),
        ("5 apples", "J"),
        ("12 furlongs", "m"),
    ],
)
def test_a_quantity_in_another_unit_has_no_number(text, unit):
    assert without_unit(text, unit) is None


@for_each("text", ["5", "x + 1", r"\frac{1}{2}", "H_2O", r"5\angle 30^\circ V", ""])
def test_what_has_no_unit_stays_as_it_is(text):
    assert text == without_unit(text, "J")


def test_no_way_of_writing_stands_for_two_units():
    plain = {form for forms in (_SCALED | _UNSCALED).values() for form in forms.split()}
    prefixed = defaultdict(set)
    for short, long in _PREFIXES.items():
        for name, forms in _SCALED.items():
            for form in forms.split():
                prefixed[f"{short}{form}"].add(f"{long}{name}")
    twice = {form for form, names in prefixed.items() if len(names) > 1}

    assert set() == twice
    assert not plain & prefixed.keys()


def test_a_unit_is_a_product_of_known_ones():
    assert all(map(is_unit, ("kg*m/s^2", "J/(mol K)", r"\Omega", "m s^{-1}")))
    assert not any(map(is_unit, ("", "furlong", "m + s", "5 m", "m/")))


@for_each(
    ("response", "score", "reason"),
    [
        (r"\boxed{9.8\,\mathrm{m/s^2}}", 1.0, "correct"),
        ("Answer: 9.8", 1.0, "correct"),
        ("Answer: 9.8 m/s^2", 1.0, "correct"),
        (r"\boxed{9.7\,\mathrm{m/s^2}}", 0.0, "wrong"),
        (r"\boxed{9.8\,\mathrm{m/s}}", 0.0, "other_unit"),
        (r"\boxed{9.8\,\mathrm{cm/s^2}}", 0.0, "other_unit"),
    ],
)
def test_an_answer_may_leave_the_unit_out_but_not_change_it(problem, response, score, reason):
    asked = problem("final_answer", {"value": "9.8", "unit": "m/s^2"})

    verdict = verify(asked, response)

    assert (score, reason) == (verdict.score, verdict.reason)


def test_a_gold_in_an_unknown_unit_is_an_abstention(problem):
    verdict = verify(problem("final_answer", {"value": "5", "unit": "furlong"}), "5")

    assert verdict.abstained
    assert "furlong" in verdict.detail
