import io

from rich.console import Console

from data_schemas.ledgers import LedgerRow, PromptCost, TokenUse
from data_schemas.rows import Domain
from tasks.provenance.ledger.accounts import settle
from tasks.provenance.ledger.figure import ledger_png
from tasks.provenance.ledger.text import ledger_text
from tests.records import filled


def account():
    rows = [
        filled(
            LedgerRow,
            problem_id=f"p{number}",
            domain=Domain.CODE,
            rollouts=4,
            generated_tokens=1000,
            trained_tokens=500,
            solved=2,
            abstained=1,
            advantage_mass=float(number),
        )
        for number in range(6)
    ]
    costs = [
        PromptCost(
            step=1,
            round=0,
            problem_id=f"p{number}",
            engine_seconds=1.0,
            verifier_seconds=0.25,
            judge_calls=2,
        )
        for number in range(6)
    ]
    return settle(rows, costs, grading=2000)


def printed(show):
    console = Console(file=io.StringIO(), width=160)
    console.print(ledger_text(account(), "rl/one", show))
    return console.file.getvalue()


def test_best_prompts_come_first_and_worst_prompts_first_among_the_worst():
    text = printed(2)
    best, worst = text.split("rl/one: prompts that earned least per token")

    assert best.index("p5") < best.index("p4")
    assert "p3" not in best
    assert worst.index("p0") < worst.index("p1")


def test_the_last_line_says_what_it_cost():
    words = " ".join(printed(1).split())

    assert "6 draws: 6,000 tokens generated in 6.0 s, 50% of them with weight in the loss" in words
    assert "12 judge calls" in words


def test_every_use_of_the_generated_tokens_is_printed():
    words = " ".join(printed(1).split())

    assert "trained 3,000 37.5%" in words
    assert "no advantage 3,000 37.5%" in words
    assert "grading 2,000 25.0%" in words
    for use in TokenUse:
        assert use.replace("_", " ") in words


def test_the_picture_is_a_png_and_the_same_every_time():
    picture = ledger_png(account(), "rl/one")

    assert picture.startswith(b"\x89PNG")
    assert picture == ledger_png(account(), "rl/one")
