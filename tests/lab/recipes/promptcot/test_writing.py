import random
from itertools import islice

import pytest

from data_schemas.arrow import read_table
from data_schemas.rows import DEMONSTRATIONS, Demonstration, Domain, Parent
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.items import is_problem_prompt
from tasks.engines.chat import load_tokenizer
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.lab.recipes.promptcot import seeds
from tasks.lab.recipes.promptcot.prompts import writer_response
from tasks.lab.recipes.promptcot.records import FRESH, POOL, WordedProblem
from tasks.lab.recipes.promptcot.settings import SynthesisSettings
from tasks.lab.recipes.promptcot.wording import parse
from tasks.lab.recipes.promptcot.writing import keep_new, walk, write

SETTINGS = SynthesisSettings()


def drawn(*, problems, count):
    items = islice(draw_items(random.Random(1), Domain.MATHS, problems=problems), count)
    return [item.prompt for item in items]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("seeds")
    seeds.begin(0, out)
    return out


def written_for(tiny_moe, problems):
    tokenizer = load_tokenizer(tiny_moe)
    asked = {found.concepts.text: text for text in problems if (found := parse(text))}

    def script(prompt, _):
        (text,) = [text for concepts, text in asked.items() if f"Write: {concepts}<" in prompt]
        return writer_response("plan", text)

    return write(SETTINGS, list(asked), ScriptedRolloutEngine(tokenizer, script), tokenizer)


def test_seeds_are_taught_items_and_no_problem_is_in_two_of_their_parts(folder):
    pool = [row.problem for row in read_table(folder / POOL, WordedProblem)]
    fresh = [row.problem for row in read_table(folder / FRESH, WordedProblem)]
    shown = read_table(folder / DEMONSTRATIONS, Demonstration)
    taught = [one.response.partition("</think>")[2] for one in shown if one.parent is Parent.WRITER]

    assert [seeds.NUM_TAUGHT, seeds.NUM_POOL, seeds.NUM_FRESH] == [
        len(taught),
        len(pool),
        len(fresh),
    ]
    together = [*taught, *pool, *fresh]
    assert len(together) == len(set(together))
    assert not [text for text in together if is_problem_prompt(text)]


def test_a_held_out_prompt_of_any_seed_is_left_out_by_its_hash(tiny_moe):
    taught, examined = drawn(problems=False, count=5), drawn(problems=True, count=5)
    written = written_for(tiny_moe, [*taught, *examined])

    kept = keep_new(written, taught[:1])

    reasons = {one.response.partition("</think>")[2]: one.reason for one in kept}
    expected = {taught[0]: "taught"} | dict.fromkeys(taught[1:], "")
    assert expected | dict.fromkeys(examined, "held_out_prompt") == reasons
    assert taught[1:] == [one.problem for one in kept if not one.reason]


def test_a_problem_is_kept_once(tiny_moe):
    (one,) = written_for(tiny_moe, drawn(problems=False, count=1))

    assert ["", "twice"] == [row.reason for row in keep_new([one, one], [])]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("<think>plan</think>pan 30, kite 40. Total?", "other_concepts"),
        ("<think>plan</think>how are you", "no_problem"),
        ("pan 30, kite 40. Total?", "form"),
        ("<think>" + "plan; " * 90, "unended"),
    ],
)
def test_what_is_not_valid_is_left_out_with_its_reason(tiny_moe, response, reason):
    tokenizer = load_tokenizer(tiny_moe)
    writer = ScriptedRolloutEngine(tokenizer, lambda *_: response)

    (found,) = write(SETTINGS, ["add; kite, pan; 2"], writer, tokenizer)

    assert (reason, "") == (found.reason, found.problem)


def test_walked_concepts_are_new_sets_in_the_form_of_known_ones(folder):
    rows = read_table(folder / POOL, WordedProblem)
    walked = walk(rows, 200, seed=0)

    forms = {(row.concepts.split("; ")[0], row.concepts.split("; ")[2]) for row in rows}
    assert {(text.split("; ")[0], text.split("; ")[2]) for text in walked} == forms
    assert walked == walk(rows, 200, seed=0)
    assert walked != walk(rows, 200, seed=1)
    assert set(walked) - {row.concepts for row in rows}
    for text in walked:
        goods = text.split("; ")[1].split(", ")
        assert len(goods) == len(set(goods))


def test_the_walk_prefers_goods_that_occur_together():
    rows = [
        WordedProblem(id=str(place), concepts="", problem=text)
        for place, text in enumerate(["pan 30, kite 40. Total?"] * 9 + ["boot 30, soap 40. Total?"])
    ]

    walked = walk(rows, 200, seed=0)

    after_pan = [text for text in walked if text.startswith("add; pan, ")]
    together = [text for text in after_pan if text == "add; pan, kite; 2"]
    assert len(together) > 0.9 * len(after_pan) > 0
