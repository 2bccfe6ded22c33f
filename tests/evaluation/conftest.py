"""A tokenizer built in memory, problems, and samples written down by hand."""

import pytest

from data_schemas.rows import Domain
from data_schemas.samples import RequestKind, SampleResult
from tasks.training.foundation.tokenizer import train_tokenizer
from tests.records import filled, problem_of


@pytest.fixture(scope="session")
def tokenizer():
    """Bytes and control tokens, no merges."""
    return train_tokenizer(["a"], vocabulary=263, max_length=512)


@pytest.fixture
def make_problem():
    """A final-answer problem whose prompt is its id."""

    def make(name, *, domain=Domain.MATHS, language="en", value="7"):
        return problem_of(
            name, f'{{"value":"{value}"}}', id=name, domain=domain, language=language, source="hand"
        )

    return make


@pytest.fixture
def make_samples():
    """Samples of one problem from its scores; None is an abstention."""

    def make(
        problem_id,
        scores,
        *,
        domain=Domain.MATHS,
        language="en",
        answers=(),
        level=0,
        request=RequestKind.ORDINARY,
    ):
        return [
            filled(
                SampleResult,
                problem_id=problem_id,
                domain=domain,
                language=language,
                sample=place,
                score=score,
                reason="scored" if score is not None else "timeout",
                tokens=5,
                surprisal_nats=1.0,
                answer=answers[place] if answers else None,
                level=level,
                request=request,
                source="hand",
            )
            for place, score in enumerate(scores)
        ]

    return make
