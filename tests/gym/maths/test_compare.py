"""What is the same, what is not."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.maths.compare import same
from tasks.gym.maths.parse import parse
from tests.tables import for_each

SAME = [
    ("1000", "1,000"),
    ("1000", "1 000"),
    ("1000", "1{,}000"),
    ("14,\\!641", "14641"),
    ("32349", "32,\\! 349"),
    ("\\$32,348", "32348"),
    ("1000.99", "1,000.99m²"),
    ("1500000", "Rp1.500.000"),
    ("1,22", "1.22"),
    ("18", "$18.00"),
    ("18 dollars", "$18"),
    ("18", "18 dollars per day"),
    ("26", "\uff12\uff16"),
    ("25", "5²"),
    ("1/3", "0.3333333"),
    ("1/3", "\\frac13"),
    ("\\frac12", "{1 \\over 2}"),
    ("1.5", "\\frac32"),
    ("3.5", "3 1/2"),
    ("3.5", "3½"),
    ("2\\frac{1}{4}", "9/4"),
    ("0.0833333333", "1/12"),
    ("30.52", "\\frac{1587}{52}"),
    ("-0.458", "-\\frac{27}{59}"),
    ("6.46", "\\frac{84}{13}\\text{ days}"),
    ("3.14", "\\pi"),
    ("\\$12.55", "\\frac{640}{51}"),
    ("②③", "③和②"),
    ("②③", "②、③"),
    ("1, 2, 3", "(x, y, z) = (1, 2, 3)"),
    ("line segment, circle", "\\text{line segment and circle}"),
    ("\\infty", "\\text{Infinity}"),
    ("-\\infty", "negative infinity"),
    ("\\text{infinitely many}", "\\infty"),
    ("50\\%", "50"),
    ("50", "50 percent"),
    ("5\\text{ cm}^2", "5"),
    ("26", "26 apples"),
    ("8000000", "8 million"),
    ("5\\text{ hours}", "5 \\text{hour}"),
    ("90^\\circ", "90"),
    ("120", "5!"),
    ("2^{25}\\cdot 26!", "26! \\cdot 2^{25}"),
    ("2^{2020}", "4^{1010}"),
    ("\\sqrt{16}", "4"),
    ("4\\sqrt2+8", "4√2 + 8"),
    ("\\sin 30^\\circ", "\\frac12"),
    ("-8", "minus 8"),
    ("60", "\\ 60\\ "),
    ("78\\pi", "78π"),
    ("p - q", "-q+p"),
    ("ab", "ba"),
    ("abc", "c \\cdot b \\cdot a"),
    ("\\text{(D)}", "D"),
    ("\\text{Sunday}", "sunday"),
    ("yes", "Yes."),
    ("1242_6", "1242"),
    ("\\frac{\\sqrt{3}}{2}", "\\sqrt{3}/2"),
    ("x^2+2x+1", "(x+1)^2"),
    ("\\sin 2x", "2\\sin x\\cos x"),
    ("2n-2", "2(n-1)"),
    ("2f(x+1)", "2f(1+x)"),
    ("\\{1,2,3\\}", "\\{3,2,1\\}"),
    ("1 \\pm \\sqrt{2}", "1-\\sqrt{2}, 1+\\sqrt{2}"),
    ("x \\in [-2,7]", "-2 \\le x \\le 7"),
    ("x>5", "(5,\\infty)"),
    ("(-\\infty, 1)\\cup(1, \\infty)", "(1,\\infty) \\cup (-\\infty,1)"),
    ("(3, 2)", "(p,q)=(3,2)"),
    ("x=1, y=2", "y = 2, x = 1"),
    ("15", "m+n=15"),
    ("15", "12+3=15"),
    ("y = 3x+1", "2y=6x+2"),
    ("2/3", "\\frac23 \\approx 0.67"),
    ("0.67", "\\frac23 \\approx 0.67"),
    ("5.2", "\\approx 5.2"),
    (
        "\\begin{pmatrix} 2 & 1 \\\\ 7 & -2 \\end{pmatrix}",
        "\\begin{bmatrix}2&1\\\\7&-2\\end{bmatrix}",
    ),
]
DIFFERENT = [
    ("1000000", "1000001"),
    ("61917364224", "61917350000.5"),
    ("\\frac{12345678}{7}", "\\frac{12345685}{7}"),
    ("1000000", "1000000, 1"),
    ("2.3", "2, 3"),
    ("x = 2 \\text{ or } 3", "2"),
    ("x = 2 \\text{ or } 3", "2 \\text{ or } 7"),
    ("5", "5.1"),
    ("5", "5, 1"),
    ("1/3", "0.333"),
    ("1/3", "0.3333334"),
    ("\\frac{1587}{52}", "30.52"),
    ("30.53", "\\frac{1587}{52}"),
    ("0.46", "\\frac{27}{59}"),
    ("30.52", "30.519"),
    ("-30.52", "\\frac{1587}{52}"),
    ("0.123", "0.\\overline{123}"),
    ("②③", "23"),
    ("②③", "②④"),
    ("1, 2, 3", "(1, 3, 2)"),
    ("1, 2", "(1, 2)"),
    ("\\infty", "negative infinity"),
    ("\\pi", "3.14"),
    ("\\sqrt{123456789}", "\\sqrt{123456790}"),
    ("4", ".4"),
    ("52", "5²"),
    ("12", "1 2"),
    ("26", "26 26"),
    ("5", "5!"),
    ("5!", "5"),
    ("2^{25}\\cdot 26!", "2^{25}\\cdot 26"),
    ("i", "-i"),
    ("p - q", "p + q"),
    ("ab", "a+b"),
    ("8", "8 million"),
    ("8", "4√2 + 8"),
    ("8", "> 8"),
    ("8", "\\neq 8"),
    ("8", "\\text{not } 8"),
    ("8", "8 or more"),
    ("3", "2^3"),
    ("10\\text{ cm}", "10\\text{ inches}"),
    ("5\\text{ cm}", "5\\text{ cm}^2"),
    ("5 cm", "5 m"),
    ("\\$18", "€18"),
    ("2", "2x"),
    ("2", "2i"),
    ("I(0)", "2I(0)"),
    ("2f(x)", "f(2x)"),
    ("(0,9)", "[0,9)"),
    ("(1,2)", "(2,1)"),
    ("x \\geq 5", "x \\leq 5"),
    ("x=1, y=2", "x=2, y=1"),
    ("s^2 \\le 8r^2", "s^3 \\le 8r^2"),
    ("\\pm 2021", "2021"),
    ("f(x)", "f(y)"),
    ("28_9", "28_{8}"),
    ("1:4", "2:4"),
    ("26", "27=26"),
    ("0.56 = 56\\%", "1.56 = 56\\%"),
    ("0", "a+3z"),
    ("a+3z=0", "0"),
    ("1", "2a + z = 1"),
    ("y=3x+1", "y=3x+2"),
    ("26", "26 or 27"),
    ("(100,200)", "100200"),
    ("A", "B"),
    ("\\text{October 30}", "\\text{October 40}"),
    ("2^{1009}", "3^{1009}"),
    ("100", "9^{9^{9^9}}"),
    ("1", "9**9**9**9"),
    ("\\frac{1}{2^{98}}", "\\frac{2}{2^{98}}"),
    ("\\lfloor\\sqrt{n-1}\\rfloor", "\\lfloor\\sqrt{n-2}\\rfloor"),
    ("0.67", "5 \\approx 0.67"),
]


@for_each(("gold", "candidate"), SAME)
def test_these_are_the_same(gold: str, candidate: str) -> None:
    assert same(parse(gold), parse(candidate)) is True


@for_each(("gold", "candidate"), DIFFERENT)
def test_these_differ(gold: str, candidate: str) -> None:
    assert same(parse(gold), parse(candidate)) is not True


@for_each(
    ("language", "gold", "candidate", "expected"),
    [
        ("id", "70000", "70.000", True),
        ("en", "70000", "70.000", False),
        ("en", "70", "70.000", True),
        ("id", "2.5", "2,5", True),
        ("id", "18", "Rp18,00", True),
        ("id", "8000000", "8 juta", True),
        ("vi", "8000000", "8 triệu", True),
        ("es", "8", "8 millones", False),
        ("zh", "80000", "8万", True),
        ("zh", "18", "十八元", True),
        ("th", "18", "๑๘ บาท", True),
    ],
)
def test_numbers_follow_the_language(language, gold, candidate, expected) -> None:
    assert expected is same(parse(gold, language), parse(candidate, language))


@given(a=st.integers(0, 10**30), b=st.integers(0, 10**30))
def test_different_integers_are_different(a: int, b: int) -> None:
    assert (a == b) is same(parse(str(a)), parse(str(b)))


@given(number=st.integers(-(10**12), 10**12))
def test_separators_currency_and_case_of_digits_do_not_matter(number: int) -> None:
    for written in (f"{number:,}", f"${number}$", f"{number}.00", f"  {number} apples."):
        assert same(parse(str(number)), parse(written)) is True


@given(top=st.integers(-999, 999), bottom=st.integers(1, 999), factor=st.integers(1, 9))
def test_fractions_are_exact(top: int, bottom: int, factor: int) -> None:
    scaled = f"\\frac{{{top * factor}}}{{{bottom * factor}}}"
    near = f"{top * 10**9 + 1}/{bottom * 10**9}"

    assert same(parse(f"{top}/{bottom}"), parse(scaled)) is True
    assert same(parse(f"{top}/{bottom}"), parse(near)) is False


@given(values=st.lists(st.integers(-99, 99), min_size=2, max_size=4, unique=True), data=st.data())
def test_sets_are_unordered_and_tuples_are_not(values: list[int], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(values))
    gold, found = (", ".join(map(str, row)) for row in (values, shuffled))

    assert same(parse(f"\\{{{gold}\\}}"), parse(f"\\{{{found}\\}}")) is True
    assert same(parse(f"({gold})"), parse(f"({found})")) is (values == shuffled)
