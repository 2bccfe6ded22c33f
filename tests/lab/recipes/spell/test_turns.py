"""SPELL's chains, alone and in a phase that is stopped and resumed."""

import dataclasses
import json
from itertools import count

import pytest

from data_schemas.ledgers import AgentLedgerRow, GroupOutcome
from data_schemas.reports import LEDGER_FILE
from data_schemas.rl_settings import EngineSettings, RLSettings, ZeroVarianceSettings
from data_schemas.rollouts import RolloutGroup, ScoredRollout
from data_schemas.rows import Domain, Problem
from data_schemas.verdicts import abstain, scored
from tasks.durability import states
from tasks.formats.ledgers import read_ledger
from tasks.lab.recipes.spell import roles
from tasks.lab.recipes.spell.offers import Task
from tasks.lab.recipes.spell.roles import questioner_input, task_of, verify
from tasks.lab.recipes.spell.settings import PastQuestion, SpellRecipe, SpellRole
from tasks.lab.recipes.spell.turns import Spell
from tasks.rl import state, step_snapshot
from tasks.rl.batch import build
from tasks.rl.groups import CollectedGroup
from tasks.rl.phase import finish, train
from tasks.rl.recipe import Recipe, open_recipe
from tasks.rl.replay.recompute import compare
from tasks.store.manifest import folder_manifest

LINES = ("A: Nara7, Kibo4", "B: Zeta9, Tovi2", "C: Sono5, Pazu3", "D: Raki6, Bema8")
QUESTIONS = {
    Task.NUMERIC: '{"q":"Nara + Zeta","a":"16"}',
    Task.FREE: '{"q":"Cheapest of A, B","a":"Tovi"}',
    Task.CHOICE: '{"q":"Dearest: Nara, Kibo, Zeta","a":"Zeta"}',
}
STEPS = 4


class Sealed(Problem):
    """Its gold cannot be read."""

    def __getattribute__(self, name):
        if name == "answer":
            raise AssertionError("a reward reads Problem.answer")
        return super().__getattribute__(name)


def root(name="lists/1", kind=Sealed):
    return kind(
        id=name,
        domain=Domain.GENERAL,
        language="en",
        messages=questioner_input(Task.NUMERIC, (), LINES),
        verifier=roles.NAME,
        answer="{}",
        source="lists",
        source_row="0" * 64,
    )


@pytest.fixture
def play(make_rollout):
    """Play whole chains behind some draws; `says` writes the texts of a group."""

    def run(says, keys=("1.0.2",), memory=None, settings=None, size=4):
        recipe, found = Spell(settings or SpellRecipe()), []
        waiting = [recipe.first_turn(key, root(), memory or {}) for key in keys]
        while waiting:
            turn = waiting.pop(0)
            problem = Sealed.model_construct(**dict(turn.problem))
            texts = says(turn, turn.size or size)
            items = tuple(
                ScoredRollout(
                    make_rollout(sample),
                    text or "",
                    abstain("timeout") if text is None else verify(problem, text),
                    0.0,
                )
                for sample, text in enumerate(texts)
            )
            outcome = GroupOutcome.NON_ZERO_VARIANCE
            entry = CollectedGroup(RolloutGroup(problem, items), 0, outcome, turn=turn)
            found.append(entry)
            waiting += recipe.next_turns(turn.key, root(), entry)
        return recipe.reward(found, memory or {})

    return run


def talk(question=QUESTIONS, answers=("16", "It is 16", "20", "3"), votes=None, guess="?"):
    """What every agent says; the verifier compares letter by letter unless told otherwise."""

    def says(turn, size):
        lines = turn.problem.messages[-1].content.splitlines()
        match turn.agent:
            case SpellRole.QUESTIONER:
                return [question[task_of(turn.problem.messages)]]
            case SpellRole.CLOSED_BOOK:
                return [guess]
            case SpellRole.RESPONDER:
                return (answers * size)[:size]
            case SpellRole.VERIFIER:
                same = f"[[{'YES' if lines[-1].endswith(lines[-2]) else 'NO'}]]"
                return (votes or {}).get(lines[-1], [same] * size)

    return says


def of(rewarded, agent):
    return [entry for entry in rewarded.groups if entry.turn.agent == agent]


def scores(entry):
    return [item.verdict.score for item in entry.group.rollouts]


def trains(entry):
    return entry.outcome is not GroupOutcome.SURPLUS


def test_a_chain_is_question_guess_answers_and_votes_on_each_answer_once(play):
    found = play(talk(answers=("16", "20", "16", "20")))

    agents = [entry.turn.agent for entry in found.groups]
    assert [SpellRole.QUESTIONER, SpellRole.CLOSED_BOOK, SpellRole.RESPONDER] == agents[:3]
    assert [SpellRole.VERIFIER] * 2 == agents[3:]
    assert [1, 1, 4, 4, 4] == [len(entry.group.rollouts) for entry in found.groups]
    inputs = [entry.turn.problem.messages[-1].content for entry in found.groups]
    assert "Nara + Zeta" == inputs[1]
    assert "\n".join((*LINES, "Nara + Zeta")) == inputs[2]
    assert ["Nara + Zeta\n16\n16", "Nara + Zeta\n16\n20"] == inputs[3:]
    keys = [entry.turn.key for entry in found.groups]
    assert len(set(keys)) == len({entry.turn.problem.id for entry in found.groups}) == len(keys)


def test_no_reward_reads_the_gold_which_cannot_be_read_here(play):
    """Every problem that a recipe is given raises if its gold is read."""
    found = play(talk())

    with pytest.raises(AssertionError, match=r"reads Problem\.answer"):
        _ = root().answer
    assert {Sealed} == {type(entry.group.problem) for entry in found.groups}
    (answers,) = of(found, SpellRole.RESPONDER)
    (question,) = of(found, SpellRole.QUESTIONER)
    assert [1.0, 1.0, 0.0, 0.0] == scores(answers)
    assert [1.0] == scores(question)


def test_an_answer_is_paid_if_rule_or_majority_accepts_it_and_a_false_accept_is_counted(play):
    lenient = {"20": ["[[YES]]"] * 3 + ["[[NO]]"]}

    found = play(talk(votes=lenient))

    (answers,) = of(found, SpellRole.RESPONDER)
    assert [1.0, 1.0, 1.0, 0.0] == scores(answers)
    reasons = [item.verdict.reason for item in answers.group.rollouts]
    assert ["correct", "correct", "accepted", "wrong"] == reasons
    assert 0.25 == found.metrics["spell/false_accept_share"]
    assert pytest.approx(1 / 3) == found.metrics["spell/paid_wrong_share"]


def test_half_of_the_votes_is_no_majority_and_an_unreadable_vote_is_paid_nothing(play):
    torn = {"20": ["[[YES]]", "[[YES]]", "?", "[[NO]]"]}

    found = play(talk(votes=torn))

    (answers,) = of(found, SpellRole.RESPONDER)
    votes = {
        e.turn.problem.messages[-1].content[-2:]: scores(e) for e in of(found, SpellRole.VERIFIER)
    }
    assert [1.0, 1.0, 0.0, 0.0] == scores(answers)
    assert [0.0, 0.0, 0.0, 1.0] == votes["20"]


def test_only_votes_that_differ_and_agree_with_the_rule_train(play):
    votes = {
        "16": ["[[YES]]"] * 3 + ["[[NO]]"],
        "20": ["[[YES]]"] * 3 + ["[[NO]]"],
    }

    found = play(talk(votes=votes))

    trained = [entry for entry in of(found, SpellRole.VERIFIER) if trains(entry)]
    assert ["16"] == [e.turn.problem.messages[-1].content.splitlines()[-1] for e in trained]


@pytest.mark.parametrize(
    ("changes", "score", "penalty", "reason"),
    [
        ({"question": dict.fromkeys(Task, "no question")}, 0.0, -1.0, "bad_format"),
        ({"guess": "It is 16"}, 0.0, -0.5, "ungrounded"),
        ({"answers": ("16",)}, 0.0, 0.0, "always_solved"),
        ({"answers": ("3",)}, 0.0, 0.0, "unsolved"),
        ({"answers": ("16", "3", "4", "5")}, 0.324652, 0.0, "solvable"),
        (
            {"question": dict.fromkeys(Task, '{"q":"A","a":"0"}')},
            None,
            0.0,
            "unusable_question",
        ),
        ({"answers": (None,)}, None, 0.0, "not_answered"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_question_is_paid_by_the_answers_to_it(play, changes, score, penalty, reason):
    (question,) = of(play(talk(**changes)), SpellRole.QUESTIONER)

    (item,) = question.group.rollouts
    assert reason == item.verdict.reason
    assert pytest.approx((score, penalty), abs=2e-6) == (item.verdict.score, item.penalty)


def test_what_follows_an_ungrounded_question_trains_nothing(play):
    found = play(talk(guess="16", votes={"3": ["[[YES]]"] + ["[[NO]]"] * 3}))

    assert not any(map(trains, found.groups))
    assert {} == found.memory


def test_questions_train_with_advantages_of_their_task(play):
    keys = [f"1.0.{place}" for place in range(9)]

    def says(turn, size):
        place = int(turn.parent.split("/")[0].split(".")[2])
        if place >= 6:
            return talk(question=dict.fromkeys(Task, "no question"))(turn, size)
        wanted = json.loads(QUESTIONS[tuple(Task)[(1 + place) % 3]])["a"]
        return talk(answers=(wanted, "x", "y", "z") if place < 3 else (wanted, "x"))(turn, size)

    questions = of(play(says, keys), SpellRole.QUESTIONER)

    assert all(map(trains, questions))
    # Every task has a question that a quarter of the answers solve, one of a half, and a bad one.
    given = [entry.advantages[0] for entry in questions]
    for task in range(3):
        assert pytest.approx([0.212731, 0.876517, -1.089249], abs=2e-5) == given[task::3]


def test_a_frozen_questioner_trains_nothing(play):
    found = play(talk(), settings=SpellRecipe(train_questioner=False))

    assert [False] == list(map(trains, of(found, SpellRole.QUESTIONER)))
    assert [True] == list(map(trains, of(found, SpellRole.RESPONDER)))


def test_the_memory_keeps_the_last_three_solvable_questions_of_a_cluster(play):
    memory = {}
    for number in count(1):
        question = dict.fromkeys(Task, f'{{"q":"Nara + Zeta, {number}","a":"16"}}')
        says = talk(question=question)
        before = len(memory.get("lists/1", ()))
        memory = play(says, keys=[f"{3 * number}.0.0"], memory=memory).memory
        if number == 5:
            break
        assert min(before + 1, 3) == len(memory["lists/1"])

    assert [f"Nara + Zeta, {number}" for number in (3, 4, 5)] == [
        one["question"] for one in memory["lists/1"]
    ]


@pytest.mark.parametrize(("memory", "shown"), [(True, 1), (False, 0)])
def test_the_next_question_sees_new_documents_and_the_memory(play, memory, shown):
    known = {"lists/1": (PastQuestion(documents=LINES[:2], question="Nara", answer="7"),)}

    turn = Spell(SpellRecipe(memory=memory)).first_turn("1.0.2", root(), known)

    content = turn.problem.messages[-1].content
    assert shown == content.count("Q: Nara")
    assert {*LINES[2:]} == {*content.rpartition("New:\n")[2].splitlines()}


def test_a_question_that_is_remembered_is_not_distinct(play):
    (old,) = play(talk()).memory["lists/1"]

    again = play(talk(), memory={"lists/1": (old,)})

    assert 0.0 == again.metrics["spell/distinct_share"]
    assert 1.0 == play(talk()).metrics["spell/distinct_share"]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"engines": EngineSettings(segment_tokens=3)}, "engines.segment_tokens"),
        ({"zero_variance": ZeroVarianceSettings(refill_rounds=1)}, "zero_variance.refill_rounds"),
    ],
)
def test_what_cuts_a_chain_is_refused_by_name(changes, name):
    plain = {"zero_variance": ZeroVarianceSettings(refill_rounds=0)}
    settings = RLSettings(domains={Domain.GENERAL: 1.0}, **(plain | changes))

    with pytest.raises(ValueError, match=name):
        open_recipe(SpellRecipe(), settings)


@pytest.fixture
def phase(phase_in, scorer, roomy):
    """The tiny model writes noise; what its agents say follows from that noise here."""

    class Speaking(Spell):
        def next_turns(self, key, root, entry):
            return super().next_turns(key, root, spoken(entry))

        def reward(self, groups, memory):
            return super().reward([spoken(entry) for entry in groups], memory)

    def run(folder, steps=None, **changes):
        settings = {"zero_variance": ZeroVarianceSettings(refill_rounds=0)} | changes
        plain = phase_in(folder, domains={Domain.GENERAL: 1.0}, **settings)
        asked = dataclasses.replace(
            plain,
            start=roomy,
            problems=tuple(root(f"lists/{number}", Problem) for number in range(3)),
            recipe=Recipe(turns=Speaking(SpellRecipe())),
        )
        records = train(asked, scorer(lambda *_: scored(1.0, "well_formed")))
        for _ in zip(range(steps or STEPS), records, strict=False):
            pass
        return asked

    return run


def spoken(entry):
    """Let a group say what the tokens of its noise choose."""
    messages = entry.group.problem.messages
    asks = entry.turn.agent == SpellRole.QUESTIONER
    says = {
        SpellRole.QUESTIONER: ["no question", QUESTIONS[task_of(messages)] if asks else ""],
        SpellRole.CLOSED_BOOK: ["?"],
        SpellRole.RESPONDER: ["16", "Tovi", "Zeta", "3"],
        SpellRole.VERIFIER: ["[[YES]]", "[[NO]]", "?"],
    }[entry.turn.agent]
    items = tuple(
        dataclasses.replace(item, text=says[int(item.rollout.response_tokens.sum()) % len(says)])
        for item in entry.group.rollouts
    )
    return dataclasses.replace(entry, group=RolloutGroup(entry.group.problem, items))


def left_behind(phase, out):
    (out / "m").mkdir(parents=True)
    (out / "r").mkdir()
    facts = finish(phase, out / "m", out / "r")
    kept = [folder_manifest(phase.state / step_snapshot.FOLDER), folder_manifest(out / "m")]
    reports = [r.report for r in state.read_steps(phase.state, STEPS)]
    return kept, reports, facts, (out / "r" / LEDGER_FILE).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="synchronous"),
        pytest.param({"engines": EngineSettings(staleness=1)}, id="one step off"),
    ],
)
def test_a_phase_stopped_with_a_memory_ends_in_the_same_bytes(phase, tmp_path, changes):
    changes = changes | {"prompts_per_step": 6}
    whole = left_behind(phase(tmp_path / "whole", **changes), tmp_path / "one")
    phase(tmp_path / "half", steps=2, **changes)

    data = states.read_file(tmp_path / "half", 2, state.INFLIGHT_FILE)
    problems = [root(f"lists/{number}", Problem) for number in range(3)]
    remembered = state.decode(data, problems).collector.memory
    resumed = left_behind(phase(tmp_path / "half", **changes), tmp_path / "two")

    assert remembered
    assert whole == resumed
    assert whole[2]["engine_tokens"] == whole[2]["generated_tokens"]
    trained = [report.metrics for report in whole[1]]
    for agent in (SpellRole.QUESTIONER, SpellRole.RESPONDER, SpellRole.VERIFIER):
        assert sum(metrics[f"spell/{agent}_trained_groups"] for metrics in trained) > 0
    rows = read_ledger(tmp_path / "one" / "r" / LEDGER_FILE)
    assert {*Spell(SpellRecipe()).limits.agents} == {
        row.agent for row in rows if isinstance(row, AgentLedgerRow)
    }
    assert {problem.id for problem in problems} == {row.problem_id for row in rows}


def test_a_step_is_recomputed_from_its_snapshot_with_the_advantages_of_its_questions(
    phase, tmp_path
):
    done = phase(tmp_path, prompts_per_step=6)
    last = step_snapshot.find_snapshots(done.state, STEPS)[-1]

    back = step_snapshot.decode(last.read_bytes())

    assert last.read_bytes() == step_snapshot.encode(back)
    assert [] == [row for row in compare(back) if row.difference]
    given = [entry.advantages for entry in back.groups if entry.advantages]
    assert given
    batch = build(back.settings, back.groups)
    trained = [
        float(advantage)
        for (place, _), advantage in zip(batch.owners, batch.advantages_N, strict=True)
        if back.groups[place].advantages
    ]
    assert pytest.approx([one for (one,) in given if one]) == trained
