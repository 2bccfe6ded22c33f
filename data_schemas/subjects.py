"""What problems are about: the subject that their source names, and its MSC 2020 class.

Source: Mathematics Subject Classification MSC2020 of Mathematical Reviews and zbMATH Open
(msc2020.org), first level.
"""

SUBJECT = "subject"
"""Name of the facet that says what a problem is about."""
MSC = "msc"
"""Name of the facet with the two-digit classes: '11', or '05, 60' for a subject of two classes."""
_STEP = "->"
"""Between the levels of a subject, as DeepMath-103K writes them."""

CLASSES = {
    "03": "Mathematical logic and foundations",
    "05": "Combinatorics",
    "11": "Number theory",
    "12": "Field theory and polynomials",
    "15": "Linear and multilinear algebra; matrix theory",
    "20": "Group theory and generalizations",
    "26": "Real functions",
    "30": "Functions of a complex variable",
    "34": "Ordinary differential equations",
    "51": "Geometry",
    "53": "Differential geometry",
    "60": "Probability theory and stochastic processes",
    "62": "Statistics",
}
"""Names of the classes below."""
_CLASS_OF = {
    "calculus": "26",
    "combinatorics": "05",
    "complex analysis": "30",
    "counting & probability": "05, 60",
    "differential geometry": "53",
    "field theory": "12",
    "geometry": "51",
    "graph theory": "05",
    "group theory": "20",
    "inequalities": "26",
    "linear algebra": "15",
    "logic": "03",
    "number theory": "11",
    "ordinary differential equations": "34",
    "polynomials": "12",
    "probability": "60",
    "real analysis": "26",
    "statistics": "62",
}
"""Classes of subjects that lie within a class: graph theory is 05C, inequalities 26D, polynomials
12D.

Algebra, Intermediate Algebra, Prealgebra and Precalculus have none: they are courses whose problems
belong to many classes.
"""


def msc_of(subject: str) -> str:
    """Return the class of a subject, '' if it has none.

    Of 'Mathematics -> Discrete Mathematics -> Graph Theory' it is that of the narrowest level that
    has one.
    """
    levels = [level.strip().casefold() for level in subject.split(_STEP)]
    return next((_CLASS_OF[level] for level in reversed(levels) if level in _CLASS_OF), "")
