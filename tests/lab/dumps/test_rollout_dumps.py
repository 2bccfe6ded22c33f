"""Dumps of other trainers: one that TRL wrote, the others by the layouts of their code."""

import io
import json
import math
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tasks.engines.chat import load_tokenizer, token_texts
from tasks.errors import DataError, SettingsError
from tasks.lab.dumps import command as dumps
from tasks.lab.dumps.report import (
    advantages,
    gaps,
    missing,
    otherwise,
    signal,
    verdicts,
)
from tasks.lab.dumps.rollout_dumps import read_dump
from tests.tables import for_each

TRL = Path(__file__).parent / "files" / "completions_00001.parquet"
"""Step 1 of TRL 1.16.0's GRPOTrainer on the shipped base: 4 prompts, 4 completions each."""

VERL = TRL.with_name("verl_1.jsonl")
"""The same responses and rewards, by the methods of verl 0.9.1's RayPPOTrainer that log rollouts:
their source was run on a batch of them, without the rest of verl."""

SLIME = [TRL.with_name("slime_rollout_1.pt"), TRL.with_name("slime_train_1_0.pt")]
"""The same responses by slime's `Sample.to_dict` and `_build_dump_payload` (of two ranks), without
the rest of slime: log-probabilities of the shipped base in bf16 as the engine's, in fp32 as the
trainer's."""

PRIME_RL = TRL.with_name("prime_rl_rollouts.bin")
"""The same by msgspec from prime-rl's `TrainingBatch`, whose samples have an advantage by loss."""


def verl(*rows: dict[str, Any]) -> bytes:
    """Write the file as RayPPOTrainer._dump_generations does."""
    return "\n".join(json.dumps(row) for row in rows).encode() + b"\n"


def answer(text: Any, score: Any, prompt: str = "3 + 4?", gold: Any = "7") -> dict[str, Any]:
    return {"input": prompt, "output": text, "gts": gold, "score": score, "step": 3}


def saved(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def slime_sample(group: int, reward: float, status: str = "completed") -> dict[str, Any]:
    """What Sample.to_dict() gives, with routes as numpy arrays."""
    return {
        "group_index": group,
        "index": 2 * group,
        "prompt": "3 + 4?",
        "tokens": [1, 2, 3, 4, 5],
        "response": "So 7.",
        "response_length": 3,
        "label": "7",
        "reward": reward,
        "loss_mask": [1, 0, 1],
        "rollout_log_probs": [-0.5, -9.0, -1.0],
        "rollout_routed_experts": np.zeros((4, 2, 1), np.int32),
        "status": status,
        "metadata": {},
    }


def measured(lines: Any) -> dict[str, float]:
    return {quantity: value for quantity, value, _ in lines}


def test_what_verl_and_trl_write_of_the_same_responses_says_the_same() -> None:
    ours, theirs = (read_dump(path.name, path.read_bytes()) for path in (VERL, TRL))

    assert ("verl", 16) == (ours.trainer, len(ours.responses))
    assert measured(signal(theirs.responses)) == measured(signal(ours.responses))
    assert [one.reward for one in theirs.responses] == [one.reward for one in ours.responses]
    assert {""} == {one.gold for one in ours.responses}  # null, where a row has no answer


@pytest.mark.parametrize("file", [*SLIME, PRIME_RL], ids=lambda file: file.stem)
def test_what_slime_and_prime_rl_write_of_the_same_responses_says_the_same(file: Path) -> None:
    theirs, ours = (read_dump(path.name, path.read_bytes()) for path in (TRL, file))

    assert [one.reward for one in theirs.responses] == [one.reward for one in ours.responses]
    names = ("responses", "groups", "groups/one reward", "groups/equal siblings")
    counted = measured(signal(ours.responses))
    assert [measured(signal(theirs.responses))[name] for name in names] == [
        counted[name] for name in names
    ]
    if file != SLIME[0]:
        ((_, difference, says),) = advantages(ours.responses)
        assert difference < 1e-3
        assert says.startswith("grpo, with the sample deviation gives the recorded ones")


def test_the_mismatch_of_slimes_file_is_that_of_its_two_precisions() -> None:
    rollout, train = (read_dump(path.name, path.read_bytes()).responses for path in SLIME)

    pairs = [(one.rollout_R, other.trainer_R) for one, other in zip(rollout, train, strict=True)]
    gaps_R = np.concatenate([theirs - ours for ours, theirs in pairs if theirs is not None])
    numbers = measured(gaps(train))
    assert numbers["mismatch/tokens"] == len(gaps_R)
    assert numbers["mismatch/k3"] == pytest.approx(np.mean(np.expm1(gaps_R) - gaps_R), rel=1e-3)
    assert 1e-6 < numbers["mismatch/k3"] < 1e-2
    assert all(one.truncated for one in (*rollout, *train))


def test_a_reward_that_is_no_number_is_missing_and_its_group_is_in_no_share() -> None:
    rows = [answer("7", math.nan), answer("8", 0.0), answer("2", 1.0, "1 + 1?")]
    rows.append(answer("3", 1.0, "1 + 1?"))

    responses = read_dump("3.jsonl", verl(*rows)).responses

    assert [one.reward for one in responses] == [None, 0.0, 1.0, 1.0]
    assert measured(signal(responses))["groups/one reward"] == 1.0


def test_what_trl_wrote_is_read() -> None:
    dump = read_dump(TRL.name, TRL.read_bytes())

    assert dump.trainer == "TRL"
    numbers = measured(signal(dump.responses))
    assert numbers["responses"] == 16
    assert numbers["groups"] == 4
    assert {one.reward for one in dump.responses} == {0.0, 1.0}


def test_groups_of_one_reward_and_equal_siblings_are_counted_by_hand() -> None:
    rows = [answer("7", 1.0), answer("It is 7", 1.0)]  # all solved
    rows += [answer("8", 0.0, "1 + 1?"), answer("8", 0.0, "1 + 1?")]  # all failed, the same text
    rows += [answer("2", 1.0, "1 * 2?"), answer("12", 0.0, "1 * 2?")]
    rows += [answer("alone", 0.0, "5?")]

    numbers = measured(signal(read_dump("3.jsonl", verl(*rows)).responses))

    assert numbers["groups"] == 4
    assert numbers["groups/one reward"] == pytest.approx(2 / 3)
    assert numbers["groups/one reward, the lowest"] == pytest.approx(1 / 3)
    assert numbers["groups/one reward, the highest"] == pytest.approx(1 / 3)
    assert numbers["groups/equal siblings"] == pytest.approx(1 / 3)
    assert numbers["length/in groups of one reward"] == pytest.approx(10 / 13)


def test_answers_that_other_verifiers_judge_otherwise_are_found() -> None:
    rows = [answer(r"So \boxed{7}.", 1.0), answer(r"So \boxed{8}.", 1.0)]
    rows += [answer(r"So \boxed{7}.", 0.0), answer(r"So \boxed{9}.", -1.0)]
    responses = read_dump("3.jsonl", verl(*rows)).responses

    against, lines = otherwise(verdicts(responses))

    assert measured(lines) == {
        "verdicts/compared": 4,
        "verdicts/rewarded, but wrong here": 0.25,
        "verdicts/not rewarded, but right here": 0.25,
    }
    assert [row.graded.response for row in against] == [r"So \boxed{8}.", r"So \boxed{7}."]


def test_slimes_rollouts_hold_the_sampled_tokens_alone() -> None:
    samples = [slime_sample(0, 1.0), slime_sample(0, 0.0, "truncated")]

    dump = read_dump("r.pt", saved({"rollout_id": 4, "samples": samples}))

    assert [one.group for one in dump.responses] == ["0", "0"]
    assert [one.truncated for one in dump.responses] == [False, True]
    assert dump.responses[0].rollout_R is not None
    assert dump.responses[0].rollout_R.tolist() == [-0.5, -1.0]
    assert "--save-debug-train-data" in next(missing(dump))


@pytest.mark.parametrize("version", [1, 2])
def test_the_mismatch_of_slimes_training_data_is_that_of_its_tokens(version: int) -> None:
    one = {
        "tokens": torch.tensor([1, 2, 3, 4, 5]),
        "total_lengths": 5,
        "response_lengths": 3,
        "loss_masks": torch.tensor([1, 1, 0], dtype=torch.int),
        "log_probs": torch.tensor([-0.4, -1.1, -3.0]),
        "rollout_log_probs": torch.tensor([-0.5, -1.0, -9.0]),
    }
    columns = {name: [value, value] for name, value in one.items()}
    payload: dict[str, Any] = {"rollout_id": 4, "rank": 0, "rollout_data": columns}
    if version == 2:
        payload = {"format_version": 2, "rollout_id": 4, "samples": [one, one], "dp_shards": []}

    numbers = measured(gaps(read_dump("t.pt", saved(payload)).responses))

    k3 = (math.expm1(0.1) - 0.1 + math.expm1(-0.1) + 0.1) / 2
    assert numbers["mismatch/tokens"] == 4
    assert numbers["mismatch/k3"] == pytest.approx(k3, rel=1e-5)
    assert numbers["mismatch/mean |D|"] == pytest.approx(0.1, rel=1e-5)
    assert numbers["mismatch/mean ratio"] == pytest.approx((math.exp(0.1) + math.exp(-0.1)) / 2)


@pytest.mark.parametrize("rewards", [[1.0, 0.0], [9.0, 1.0, 9.0, 0.0]], ids=["own", "of all"])
def test_the_rewards_of_one_of_slimes_ranks_are_its_own(rewards: list[float]) -> None:
    columns = {
        "tokens": [torch.tensor([1, 2, 3])] * 2,
        "response_lengths": [1, 1],
        "partition": [1, 3],
        "raw_reward": rewards,
    }

    responses = read_dump("t.pt", saved({"rank": 1, "rollout_data": columns})).responses

    assert [one.reward for one in responses] == [1.0, 0.0]


def test_the_mean_ratio_is_the_mass_that_top_p_kept() -> None:
    """An engine that renormalises over the kept tokens, a trainer that does not."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 30)) * 2
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    order = np.argsort(-probabilities, axis=1)
    ranked = np.take_along_axis(probabilities, order, axis=1)
    kept = np.cumsum(ranked, axis=1) - ranked < 0.8
    mass = (ranked * kept).sum(axis=1)
    chosen = [
        rng.choice(30, p=row * keep / sum_)
        for row, keep, sum_ in zip(ranked, kept, mass, strict=True)
    ]
    trainer = np.log(ranked[np.arange(400), chosen])
    rows = [
        {
            "tokens": [0] * 21,
            "response_lengths": 20,
            "log_probs": torch.tensor(trainer[start : start + 20]),
            "rollout_log_probs": torch.tensor((trainer - np.log(mass))[start : start + 20]),
        }
        for start in range(0, 400, 20)
    ]
    dump = read_dump("t.pt", saved({"samples": rows}))

    lines = {quantity: (value, says) for quantity, value, says in gaps(dump.responses)}

    value, says = lines["mismatch/mean ratio"]
    assert value == pytest.approx(mass.mean(), rel=1e-4)
    assert "the mass that top-p or top-k kept" in says


SPLIT = [[1, 2], [0, 0], [5, 6], [1, 1], [-0.1, -0.2]]
FLAT = [[1, 2, 5, 6], [0, 0, 1, 1], [0.0, 0.0, -0.1, -0.2], [1.0] * 4, "gsm8k"]


@for_each(
    ("example", "reward", "advantage"),
    [
        ([*SPLIT, [1.0, 1.0], "gsm8k", None, 0.5, 1.0], 1.0, 0.5),
        ([*SPLIT, [1.0, 1.0], None, 0.5, 1.0], 1.0, 0.5),
        ([*SPLIT, [-0.3, -0.4], 0.5, 1.0], 1.0, 0.5),
        ([*SPLIT, 0.5, [-0.3, -0.4]], None, None),
        (SPLIT, None, None),
        ([*FLAT, [], 1.0], 1.0, None),
        ([*FLAT, [0.0, 0.0, 0.5, 0.5], 1.0], 1.0, 0.5),
        ([*FLAT, [["rl", [0.0, 0.0, 0.5, 0.5], [0, 0, 1, 1]]], 1.0], 1.0, 0.5),
        ([*FLAT, [["rl", [0.5] * 4, [1] * 4], ["ce", [0.1] * 4, [1] * 4]], 1.0], 1.0, None),
        ([*FLAT, [-0.3] * 4], None, None),  # of a reference model
        ([*FLAT, [-0.3] * 4, {"pixel_values": []}], None, None),
    ],
)
def test_the_layouts_of_prime_rl_say_the_same(
    example: list[Any], reward: float | None, advantage: float | None
) -> None:
    payload = msgpack.packb([[example, example], 7])

    responses = read_dump("rollouts.bin", payload).responses

    assert len(responses) == 2
    facts = {(one.group, one.text, one.length, one.reward, one.advantage) for one in responses}
    assert facts == {("1 2", "5 6", 2, reward, advantage)}
    assert responses[0].rollout_R is not None
    assert responses[0].rollout_R.tolist() == pytest.approx([-0.1, -0.2])


class Stranger:
    """A class of another program."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("ran",))


@for_each(
    ("name", "payload", "message"),
    [
        ("x.csv", b"", "is no dump that is known"),
        ("x.jsonl", b"{}", "row 1: KeyError 'output'"),
        ("x.jsonl", verl(answer("7", 1.0)) + b"\n{", "row 2: no JSON: Expecting property name"),
        ("x.jsonl", verl(answer("7", "1.0")), "row 1: TypeError score is '1.0', no number"),
        ("x.jsonl", verl(answer("7", 10**400)), "row 1: OverflowError"),
        ("x.jsonl", verl(answer(["7"], 1.0)), r"row 1: TypeError output is .*, no text"),
        ("x.pt", b"", "not read without running code of its own: EOFError"),
        ("x.parquet", TRL.read_bytes()[:200] + TRL.read_bytes()[300:], "another layout"),
        ("x.jsonl", b"", "has no response"),
        ("x.jsonl", b"[]", "another layout"),
        ("x.jsonl", b"[" * 100_000, "another layout"),
        ("x.pt", saved([1]), "another layout"),
        ("x.bin", msgpack.packb({}), "another layout"),
        ("x.pt", b"none", "not read without running code"),
        ("x.bin", b"\xc1", "no msgpack"),
        ("x.parquet", b"none", "another layout"),
    ],
)
def test_another_file_is_refused(name: str, payload: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_dump(name, payload)


def test_a_pickle_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="not read without running code"):
        read_dump("x.pt", saved({"samples": [Stranger()]}))

    assert capsys.readouterr().out == ""


def test_log_probabilities_of_other_tokens_are_refused() -> None:
    sample = slime_sample(0, 1.0) | {"rollout_log_probs": [-0.5]}

    with pytest.raises(DataError, match="1 log-probabilities of 3 tokens"):
        read_dump("r.pt", saved({"samples": [sample]}))


def test_the_command_prints_tables_and_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "17.jsonl"
    file.write_bytes(verl(answer("The answer is 8", 1.0), answer("The answer is 7", 0.0)))
    out = tmp_path / "numbers.json"

    dumps.main([str(file), "--out", str(out)])

    printed = capsys.readouterr().out
    assert "written by verl" in printed
    assert "verdicts/rewarded, but wrong here" in printed
    assert "mismatch: no log-probabilities of the trainer" in printed
    assert json.loads(out.read_text())[str(file)]["groups"] == 1


def test_the_advantages_that_trl_recorded_are_those_of_an_estimator_here() -> None:
    ((name, difference, says),) = advantages(read_dump(TRL.name, TRL.read_bytes()).responses)

    assert name == "advantages/largest difference"
    assert difference < 1e-3
    assert says == "grpo, with the sample deviation gives the recorded ones, of 4 groups of 4"


def test_advantages_of_no_estimator_here_are_named_so() -> None:
    row = [[1, 2], [0, 0], [5, 6], [1, 1], [-0.1, -0.2], [1.0, 1.0], "gsm8k", None]
    rows = [[*row, advantage, reward] for advantage, reward in ((7.0, 1.0), (-7.0, 0.0))]
    responses = read_dump("rollouts.bin", msgpack.packb([rows, 7])).responses

    ((_, difference, says),) = advantages(responses)

    assert difference == pytest.approx(6.0, abs=1e-3)
    assert says == "no estimator here gives them, of 1 groups of 2; rloo is nearest"


def test_a_page_shows_the_last_dump_by_token_with_both_verdicts_and_the_curves_of_all(
    tmp_path: Path, tiny_moe: Path
) -> None:
    one = {
        "tokens": [1, 2, 3, 4, 5],
        "response_lengths": 3,
        "loss_masks": [1, 1, 0],
        "log_probs": [-0.4, -1.1, -3.0],
        "rollout_log_probs": [-0.5, -1.0, -9.0],
        "response": r"So \boxed{8}.",
        "label": "7",
        "raw_reward": 1.0,
        "advantages": [0.5, 0.5, 0.5],
    }
    files = [tmp_path / f"train_{step}.pt" for step in (1, 2)]
    for file in files:
        file.write_bytes(saved({"samples": [one, one]}))
    page = tmp_path / "page.html"

    dumps.main([*map(str, files), "--page", str(page), "--model", str(tiny_moe)])

    text = page.read_text()
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    (group,) = data["responses"]["groups"]
    response = group["responses"][0]
    assert response["gaps"] == pytest.approx([0.1, -0.1])
    assert response["tokens"] == [*token_texts(load_tokenizer(tiny_moe), [3, 4])]
    assert response["reason"] == "final_answer: wrong, rule_answer: wrong"
    assert response["score"] == 1.0
    assert response["advantage"] == 0.5
    curves = {curve["title"]: curve["points"] for curve in data["curves"]}
    assert len(curves["Mismatch, k3"]) == 2
    assert [place for place, _ in curves["Mismatch at the end of a response"]] == [1, 3]
    assert "seconds" not in json.dumps(data["tiles"])
    assert "all executions" not in text


@for_each(("gold", "read"), [(7, "7"), (["7"], "7"), ([7.5], "7.5"), (["7", "8"], ""), (True, "")])
def test_a_gold_answer_may_be_a_number_or_alone_in_a_list(gold: Any, read: str) -> None:
    dump = read_dump("3.jsonl", verl(answer("7", 1.0, gold=gold)))

    assert [one.gold for one in dump.responses] == [read]


def test_marks_at_the_start_and_half_characters_are_read() -> None:
    payload = b"\xef\xbb\xbf" + verl(answer("7 \ud800", 1.0, prompt="3 + 4? \udc00"))

    (one,) = read_dump("3.jsonl", payload).responses

    assert ("7 ?", "3 3 + 4? ?") == (one.text, one.group)


def parquet(**columns: list[Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def test_the_columns_that_trl_logs_beside_its_rewards_can_be_left_out() -> None:
    payload = parquet(
        step=[1, 1],
        prompt=["3 + 4?"] * 2,
        completion=["7", "8"],
        accuracy=[1.0, 0.0],
        num_chars=[17, 18],
        answer=[7, 7],
    )

    whole = read_dump("c.parquet", payload)
    assert (["accuracy", "num_chars"], [18.0, 18.0]) == (
        whole.rewards,
        [one.reward for one in whole.responses],
    )
    assert {"7"} == {one.gold for one in whole.responses}
    chosen = read_dump("c.parquet", payload, ["accuracy"])
    assert (["accuracy"], [1.0, 0.0]) == (
        chosen.rewards,
        [one.reward for one in chosen.responses],
    )
    message = "--rewards format is no column of numbers; accuracy, num_chars are"
    with pytest.raises(SettingsError, match=message):
        read_dump("c.parquet", payload, ["format"])
    with pytest.raises(SettingsError, match="--rewards has no effect on 3"):
        read_dump("3.jsonl", verl(answer("7", 1.0)), ["accuracy"])


def test_calls_of_tools_are_part_of_a_response() -> None:
    turns = [
        [{"role": "assistant", "content": None, "tool_calls": [{"name": name}]}] for name in "ab"
    ]
    payload = parquet(step=[1, 1], prompt=["x"] * 2, completion=turns, reward=[1.0, 0.0])

    responses = read_dump("c.parquet", payload).responses

    assert measured(signal(responses))["groups/equal siblings"] == 0.0
    assert "None" not in responses[0].text


def pair(trainer: Any, engine: list[float], **changes: Any) -> dict[str, Any]:
    own = {"tokens": [1, 2] + [5] * len(engine), "response_lengths": len(engine)}
    return own | {"log_probs": trainer, "rollout_log_probs": engine} | changes


def test_one_response_claims_nothing_of_the_mass_that_was_kept() -> None:
    dump = read_dump("t.pt", saved({"samples": [pair([-0.5001, -1.0], [-0.5, -1.0])]}))

    *_, (name, value, says) = gaps(dump.responses)

    assert "mismatch/mean ratio" == name
    assert value < 1.0
    assert says == "1 where both have the same tokens"


def test_the_error_of_the_mean_ratio_is_that_of_a_sample_of_responses() -> None:
    rows = [pair([-0.5 + gap], [-0.5]) for gap in (0.1, -0.3, 0.2)]
    dump = read_dump("t.pt", saved({"samples": rows}))

    *_, (_, value, says) = gaps(dump.responses)

    ratios = np.exp([0.1, -0.3, 0.2])
    assert value == pytest.approx(ratios.mean(), rel=1e-6)
    assert says.startswith(f"+- {1.96 * ratios.std(ddof=1) / math.sqrt(3):.2g}; ")


def test_log_probabilities_that_are_no_numbers_have_no_mismatch() -> None:
    dump = read_dump("t.pt", saved({"samples": [pair([math.nan] * 2, [-0.5, -1.0])] * 2}))

    assert measured(gaps(dump.responses)) == {
        "mismatch/tokens": 4,
        "mismatch/overflow tokens": 4,
    }


def test_a_ratio_beyond_floats_is_no_error(tmp_path: Path) -> None:
    trained = torch.tensor([-0.5, -1.0], requires_grad=True)
    rows = [pair(trained, [-9999.0, -1.0]), pair([-0.5, -1.0], [-0.5, -1.0])]
    file, out = tmp_path / "t.pt", tmp_path / "numbers.json"
    file.write_bytes(saved({"samples": rows}))

    dumps.main([str(file), "--out", str(out), "--page", str(tmp_path / "page.html")])

    numbers = json.loads(out.read_text())[str(file)]
    assert numbers["mismatch/k3"] is numbers["mismatch/mean ratio"] is None
    assert 2 == numbers["responses"]


@pytest.mark.parametrize(
    ("rewards", "recorded", "says"),
    [
        ([0.0, 1.0], [-1.0, 1.0], "grpo and rloo and maxrl give the recorded ones"),
        ([0.004, 0.0], [0.0, 0.0], "no estimator here gives them"),
    ],
)
def test_estimators_are_named_on_the_evidence_of_groups_that_vary(
    rewards: list[float], recorded: list[float], says: str
) -> None:
    row = [[1, 2], [0, 0], [5, 6], [1, 1], [-0.1, -0.2], [1.0, 1.0], "gsm8k", None]
    rows = [[*row, *pair_] for pair_ in zip(recorded, rewards, strict=True)]
    same = [[[9], *row[1:], 0.0, 1.0]] * 2
    responses = read_dump("rollouts.bin", msgpack.packb([[*rows, *same], 7])).responses

    ((_, _, found),) = advantages(responses)

    assert found.startswith(says)
    assert not [*advantages(responses[2:])]


def test_a_page_shows_what_fits_of_a_long_group(tmp_path: Path) -> None:
    file, page = tmp_path / "17.jsonl", tmp_path / "page.html"
    file.write_bytes(verl(*[answer("x" * 6000, 1.0)] * 8))
    longer = tmp_path / "t.pt"
    longer.write_bytes(saved({"samples": [pair([-0.5] * 41_000, [-0.4] * 41_000)] * 2}))

    for dump, shown in ((file, 8), (longer, 1)):
        dumps.main([str(dump), "--show", "0", "--page", str(page)])
        data = json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])
        (group,) = data["responses"]["groups"]
        assert shown == len(group["responses"])


def test_a_folder_without_a_tokenizer_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="has no tokenizer_config"):
        dumps.main([str(TRL), "--page", "p.html", "--model", str(tmp_path)])


def test_a_dump_without_pairs_has_no_mismatch() -> None:
    assert not list(gaps(read_dump("x.jsonl", verl(answer("7", 1.0))).responses))
