"""Are two mathematical expressions equal? math-verify, to be run in a worker that can be killed.

Its own timeouts are off: they use SIGALRM, which fails in threads, and swallow what they interrupt.
"""

import logging
import re

_DELIMITED = re.compile(r"\\boxed|\\\(|\\\[|\$")


def equivalent(gold: str, candidate: str) -> bool | None:
    """Compare LaTeX or plain expressions; None if the gold cannot be read."""
    from math_verify import parse, verify  # sympy takes a second to import

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    gold_parsed = parse(_delimited(gold), parsing_timeout=0)
    if not gold_parsed:
        return None
    candidate_parsed = parse(_delimited(candidate), parsing_timeout=0)
    return bool(
        verify(
            gold_parsed,
            candidate_parsed,
            allow_set_relation_comp=True,  # x in [0, 1] is 0 <= x <= 1
            timeout_seconds=0,
        )
    )


def _delimited(text: str) -> str:
    """Mark a bare expression as an answer, so that all of it is read and not its last number."""
    return text if _DELIMITED.search(text) else f"$\\boxed{{{text}}}$"
