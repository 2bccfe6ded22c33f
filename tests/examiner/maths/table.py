r"""The classes of final answers: what each does, and why its verdict is certain."""

# ruff: noqa: RUF001 - signs that people type
from tests.examiner.case import AnswerClass
from tests.examiner.maths import claims, right, wrong

PROSE = ("final_answer",)
"""`rule_answer` reads boxes, marked lines and bare lines; a sentence promises nothing there."""

RIGHT = (
    AnswerClass(
        "boxed",
        True,
        "the gold text in one of eight usual boxes",
        r"5 -> We get \[\boxed{5}\]",
        right.boxed,
    ),
    AnswerClass("bare", True, "nothing but the value", "5 -> 5", right.bare),
    AnswerClass("marked_line", True, "GSM8K's last line", "5 -> #### 5", right.hashes),
    AnswerClass(
        "sentence",
        True,
        "a plain sentence in one of seven languages",
        "5 -> Jawabannya adalah 5.",
        right.sentence,
        PROSE,
    ),
    AnswerClass(
        "fraction_macro",
        True,
        "another macro or spacing for a fraction",
        r"\frac12 -> \dfrac{1}{2}",
        right.fraction,
    ),
    AnswerClass(
        "fraction_slash",
        True,
        "a rational with a slash, where no form is asked for",
        r"\frac{1}{2} -> 1/2",
        right.slash,
    ),
    AnswerClass(
        "decimal",
        True,
        "a decimal that ends for its fraction and back, where no form is asked for",
        r"\frac{1}{4} -> 0.25",
        right.short_decimal,
    ),
    AnswerClass(
        "term_order",
        True,
        "the terms of a sum in another order",
        r"3+2\sqrt{2} -> 2\sqrt{2}+3",
        right.term_order,
    ),
    AnswerClass(
        "common_factor",
        True,
        "the integer factor of a sum before a bracket",
        "6x+4 -> 2(3x+2)",
        right.common_factor,
    ),
    AnswerClass(
        "root_below",
        True,
        "the root in the denominator",
        r"\frac{\sqrt{3}}{3} -> \frac{1}{\sqrt{3}}",
        right.root_below,
    ),
    AnswerClass(
        "spacing",
        True,
        r"LaTeX spaces, \left and \right, groups",
        r"(1,2) -> \left(1,\,2\right)",
        right.spacing,
    ),
    AnswerClass("thousands", True, "separators of thousands", "12345 -> 12{,}345", right.grouped),
    AnswerClass(
        "local_number",
        True,
        "the separators of the language that the question asks for",
        "70000 -> Jawabannya adalah 70.000.",
        right.local_format,
        PROSE,
    ),
    AnswerClass(
        "local_words",
        True,
        "an integer in the words of six languages",
        "5 -> Jawabannya adalah lima.",
        right.local_words,
        PROSE,
    ),
    AnswerClass(
        "said_twice",
        True,
        "the value again, in words or as a note in brackets",
        "3 -> The answer is 3 (2 + 1).",
        right.said_twice,
        PROSE,
    ),
    AnswerClass(
        "number_words",
        True,
        "an integer in English words",
        "42 -> The answer is forty-two.",
        right.number_words,
        PROSE,
    ),
    AnswerClass(
        "working_before",
        True,
        "a true sum or product before the box",
        r"720 -> The answer is 600 + 120 = $\boxed{720}$.",
        right.working,
    ),
    AnswerClass(
        "chain_in_box",
        True,
        "a true sum with its value within the box",
        r"720 -> \boxed{600 + 120 = 720}",
        right.chain_in_box,
    ),
    AnswerClass(
        "solution",
        True,
        "a full solution of the data set, ended by the gold",
        r"72 -> Natalia sold 48/2 = 24 clips ... \boxed{72}",
        right.solution,
    ),
    AnswerClass(
        "stated_again",
        True,
        "a box, then the same value in a sentence or marked line",
        r"5 -> \boxed{5} ... The answer is 5.",
        right.stated_again,
    ),
    AnswerClass(
        "variable", True, "an unknown with its value", r"5 -> \boxed{x = 5}", right.variable
    ),
    AnswerClass(
        "unit",
        True,
        "the gold's unit in another spelling or left out; where it has none, 'units'",
        r"90^\circ -> 90\text{ degrees}",
        right.unit,
    ),
    AnswerClass(
        "thinking",
        True,
        "another value within the thinking",
        r"5 -> <think>Is it \boxed{7}? No.</think> \boxed{5}",
        right.thinking,
    ),
    AnswerClass(
        "afterword",
        True,
        "a courtesy after the answer",
        r"5 -> \boxed{5} I hope this helps!",
        right.afterword,
    ),
    AnswerClass(
        "markdown",
        True,
        "headings, lists, quotations, tables, bold, CRLF",
        r"5 -> > $\boxed{5}$",
        right.markdown,
    ),
    AnswerClass(
        "typed_signs",
        True,
        "Unicode minus, root and pi; full-width digits in Chinese",
        "-5 -> −5",
        right.typed_signs,
    ),
    AnswerClass(
        "power_of_ten",
        True,
        "a round integer in scientific notation",
        r"7200 -> 7.2 \times 10^{3}",
        right.power_of_ten,
    ),
    AnswerClass(
        "list_order",
        True,
        "several solutions in another order",
        r"1,2 -> 2 \text{ and } 1",
        right.list_order,
    ),
    AnswerClass(
        "box_per_solution",
        True,
        "several solutions with a box each",
        r"1,2 -> \boxed{2} and \boxed{1}",
        right.several_boxes,
    ),
    AnswerClass(
        "shape_spelling",
        True,
        "matrices, bases and option letters in other LaTeX",
        "12_5 -> 12_{5}",
        right.shape_spelling,
    ),
    AnswerClass(
        "long_number_right",
        True,
        "a value of many digits, asked for as in long_number",
        "61917364224 -> 61917364224",
        wrong.long_number_right,
    ),
)
WRONG = (
    AnswerClass("digit", False, "one digit changed", r"\frac{3}{4} -> \frac{3}{5}", wrong.digit),
    AnswerClass(
        "swapped_digits",
        False,
        "two neighbouring digits change places",
        "72 -> 27",
        wrong.swapped_digits,
    ),
    AnswerClass("operator", False, "plus for minus between terms", "x+2 -> x-2", wrong.operator),
    AnswerClass(
        "sum_as_product",
        False,
        "the sign between two terms left out",
        "p - q -> p q",
        wrong.sum_as_product,
    ),
    AnswerClass(
        "flat_exponent",
        False,
        "an exponent written on the line",
        "2^{5} -> 25",
        wrong.flat_exponent,
    ),
    AnswerClass("letter", False, "another letter for an unknown", "2x -> 2y", wrong.letter),
    AnswerClass("root_lost", False, "a root left out", r"\sqrt{2} -> {2}", wrong.root_lost),
    AnswerClass("sign", False, "a value negated", "5 -> -5", wrong.sign),
    AnswerClass("off_by_one", False, "one more or one less", "5 -> 6", wrong.off_by_one),
    AnswerClass(
        "ten_times", False, "the decimal point moved by one place", "5.2 -> 52", wrong.ten_times
    ),
    AnswerClass(
        "reciprocal", False, "one over the value", r"\frac23 -> \frac{3}{2}", wrong.reciprocal
    ),
    AnswerClass(
        "long_number",
        False,
        "a value of many digits or over a small denominator, off in the last ones",
        "61917364224 -> 61917364225",
        wrong.long_number,
    ),
    AnswerClass("half_more", False, "an integer and a half", r"8 -> 8\frac{1}{2}", wrong.half_more),
    AnswerClass(
        "decimal_appended",
        False,
        "digits behind an integer, as a decimal or as a second value",
        "8 -> 8, 1",
        wrong.decimal_appended,
    ),
    AnswerClass(
        "comma_for_point",
        False,
        "a comma and a space for the decimal point, in English",
        "2.3 -> 2, 3",
        wrong.comma_for_point,
    ),
    AnswerClass(
        "grouped_zeros",
        False,
        "three zeros more, in English",
        "70 -> The answer is 70,000.",
        wrong.grouped_zeros,
    ),
    AnswerClass("factorial", False, "the factorial of the value", "5 -> 5!", wrong.factorial),
    AnswerClass(
        "superscript", False, "the last digit as an exponent", "52 -> 5²", wrong.superscript
    ),
    AnswerClass("power", False, "a power of the value", "5 -> 5^2", wrong.power),
    AnswerClass(
        "embedded",
        False,
        "an expression of another value that ends in the gold's digits",
        "3 -> 2^{3}",
        wrong.embedded,
    ),
    AnswerClass(
        "order", False, "the parts of a tuple in another order", "(1,2) -> (2,1)", wrong.order
    ),
    AnswerClass(
        "bracket", False, "an interval open where it is closed", "[0,2) -> [0,2]", wrong.bracket
    ),
    AnswerClass("element_dropped", False, "a part left out", "1,2 -> 1", wrong.element_dropped),
    AnswerClass("element_added", False, "one value more", "5 -> 5, 9", wrong.element_added),
    AnswerClass(
        "other_base", False, "the same digits in another base", "12_5 -> 12_6", wrong.other_base
    ),
    AnswerClass("other_option", False, "another option's letter", "(A) -> (B)", wrong.other_option),
    AnswerClass(
        "other_unit",
        False,
        "the same number of another unit",
        r"10\text{ cm} -> 10\text{ m}",
        wrong.other_unit,
    ),
    AnswerClass(
        "magnitude",
        False,
        "thousand, million or billion behind the value",
        "8 -> 8 million",
        claims.magnitude,
    ),
    AnswerClass(
        "relation",
        False,
        "all values above, below or other than the gold",
        r"8 -> \boxed{> 8}",
        claims.relation,
    ),
    AnswerClass(
        "negation",
        False,
        "the answer is not the gold, in seven languages",
        "8 -> Jawabannya bukan 8.",
        claims.negation,
    ),
    AnswerClass(
        "minus_word",
        False,
        "minus in words, in six languages",
        "8 -> The answer is minus 8.",
        claims.minus_word,
    ),
    AnswerClass("either", False, "the gold or another value", "3 -> either 5 or 3", claims.either),
    AnswerClass(
        "between", False, "a range that ends in the gold", "3 -> between 2 and 3", claims.between
    ),
    AnswerClass(
        "at_least", False, "a bound or a denial in words", "3 -> at least 3", claims.at_least
    ),
    AnswerClass(
        "afterthought",
        False,
        "another value in a sentence or range after the answer, in seven languages",
        r"5 -> Đáp án là 5. Hoặc 6.",
        claims.afterthought,
    ),
    AnswerClass(
        "second_answer",
        False,
        "the gold and another value, each as the answer",
        r"3 -> \boxed{3} or \boxed{4}",
        claims.second_answer,
    ),
    AnswerClass(
        "wrong_chain",
        False,
        "the gold before an equals sign, another value behind it",
        r"3 -> 3 = \boxed{4}",
        claims.wrong_chain,
    ),
    AnswerClass(
        "wrong_solution",
        False,
        "a full solution of the data set, ended by another value",
        r"72 -> ... \boxed{73}",
        claims.wrong_solution,
    ),
    AnswerClass(
        "thought_only",
        False,
        "the gold within the thinking only",
        r"5 -> <think>\boxed{5}</think>",
        claims.thought_only,
    ),
    AnswerClass(
        "unfinished",
        False,
        "the gold in thinking that never ends, in a box that is not closed, or no value",
        r"5 -> \boxed{5",
        claims.unfinished,
    ),
    AnswerClass(
        "breaking",
        False,
        "a wrong answer that is laborious to read: long, deep, huge",
        r"5 -> \boxed{4^{1010} + 6}",
        claims.breaking,
        most=200,
    ),
)
