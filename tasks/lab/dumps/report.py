"""What the rollouts of another trainer say: signal, duplicates, mismatch, verdicts."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from data_schemas.rl_settings import RewardSettings
from tasks.algorithms.advantages.table import ADVANTAGES
from tasks.algorithms.mismatch import QUARTERS, mismatch_anatomy, mismatch_metrics
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_scoring
from tasks.evaluation.agreement import GradedResponse, VerdictPair, compare_all, rows_table
from tasks.lab.dumps.page import page_of_dumps
from tasks.lab.dumps.rollout_dumps import Dump, DumpedResponse, read_dump
from tasks.store.files import canonical_json, write_bytes

_Z = 1.96
_SAME_ADVANTAGE = 1e-2
"""Tolerance, as a share of the largest one: TRL adds 1e-4 to the deviation, and bf16 has three
digits."""
_FINITE_VARIANCE = 2.0
"""Hill's index above which |D| has a variance."""

Line = tuple[str, float, str]
"""A quantity, its value, and what it says."""


def signal(responses: Sequence[DumpedResponse]) -> Iterator[Line]:
    """Yield what the rewards and texts of groups say.

    A group is what the responses to one prompt of a step are. Groups of one response, and those of
    which a reward is missing, are in no share.
    """
    groups: defaultdict[str, list[DumpedResponse]] = defaultdict(list)
    for response in responses:
        groups[response.group].append(response)
    yield "responses", len(responses), ""
    yield "groups", len(groups), "prompts of a step"
    siblings = [group for group in groups.values() if len(group) > 1]
    if siblings:
        same = [len({one.text for one in group}) < len(group) for group in siblings]
        yield "groups/equal siblings", _mean(same), "two responses are the same"
    scored = [(group, [one.reward for one in group]) for group in siblings]
    scored = [(group, rewards) for group, rewards in scored if None not in rewards]
    if scored:
        lowest, highest = (
            choose(reward for _, rewards in scored for reward in rewards if reward is not None)
            for choose in (min, max)
        )
        constant = [(group, rewards[0]) for group, rewards in scored if len(set(rewards)) == 1]
        yield "groups/one reward", len(constant) / len(scored), "no signal for a policy gradient"
        if lowest < highest:
            for name, reward in (("lowest", lowest), ("highest", highest)):
                share = sum(one == reward for _, one in constant) / len(scored)
                yield f"groups/one reward, the {name}", share, f"all {reward:g}"
        spent = sum(one.length for group, _ in constant for one in group)
        total = sum(one.length for group, _ in scored for one in group)
        yield "length/in groups of one reward", spent / max(total, 1), "of what was generated"
    ends = [one.truncated for one in responses if one.truncated is not None]
    if ends:
        yield "truncated", _mean(ends), "of the responses"


def gaps(responses: Sequence[DumpedResponse]) -> Iterator[Line]:
    """Yield what the differences of log-probabilities say; D = log p_trainer - log p_engine.

    Only responses that have both; nothing if none has.
    """
    pairs = [
        (one.trainer_R, one.rollout_R)
        for one in responses
        if one.trainer_R is not None and one.rollout_R is not None and len(one.rollout_R)
    ]
    if not pairs:
        return
    longest = max(len(rollout_R) for _, rollout_R in pairs)
    trainer_NT, rollout_NT = (
        torch.tensor(
            np.stack([np.pad(pair[side], (0, longest - len(pair[side]))) for pair in pairs])
        )
        for side in (0, 1)
    )
    lengths_N = torch.tensor([len(rollout_R) for _, rollout_R in pairs])
    mask_NT = torch.arange(longest) < lengths_N[:, None]
    yield "mismatch/tokens", int(mask_NT.sum()), f"of {len(pairs):,} responses"
    if not bool((trainer_NT - rollout_NT)[mask_NT].isfinite().any()):
        yield "mismatch/overflow tokens", int(mask_NT.sum()), "D is not finite: of none is it known"
        return
    measures = mismatch_metrics(trainer_NT, rollout_NT, mask_NT)
    measures |= mismatch_anatomy(trainer_NT, rollout_NT, mask_NT)
    measures = {name.removeprefix("mismatch/"): value for name, value in measures.items()}
    yield "mismatch/k3", measures["k3"], "nats a token: exp(D) - 1 - D"
    yield "mismatch/mean |D|", measures["mean_abs_logprob"], "nats a token"
    yield "mismatch/beyond 2x", measures["extreme_share"], "of the tokens"
    yield "mismatch/overflow tokens", measures["overflow_tokens"], "D is not finite"
    yield "mismatch/effective share", measures["effective_share"], "sample size of exp(D), tokens"
    if "tail_index" in measures:
        heavy = measures["tail_index"] < _FINITE_VARIANCE
        says = ": the variance is infinite, a few tokens decide" if heavy else ""
        yield "mismatch/tail index", measures["tail_index"], f"P(|D| > x) ~ x^-index{says}"
    for quarter in range(1, QUARTERS + 1):
        if (name := f"k3_quarter_{quarter}") in measures:
            yield f"mismatch/k3, quarter {quarter}", measures[name], "of each response"
    ratio, error = _mean_ratio([(train_R - roll_R) for train_R, roll_R in pairs])
    says = "1 where both have the same tokens"
    if ratio + _Z * error < 1.0:
        says = (
            "below 1: the mass that top-p or top-k kept, which the trainer does not know; or a "
            "heavy tail that so few tokens do not show"
        )
    width = f"+- {_Z * error:.2g}; " if math.isfinite(error) else ""
    yield "mismatch/mean ratio", ratio, f"{width}{says}"


def advantages(responses: Sequence[DumpedResponse]) -> Iterator[Line]:
    """Yield which estimators here give the recorded advantages of the recorded rewards.

    Nothing without both. Groups whose rewards differ are compared, of one size, the most frequent.
    """
    groups: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in responses:
        if one.reward is not None and one.advantage is not None:
            groups[one.group].append((one.reward, one.advantage))
    varied = [group for group in groups.values() if len({reward for reward, _ in group}) > 1]
    sizes = Counter(map(len, varied))
    if not sizes:
        return
    size, _ = sizes.most_common(1)[0]
    known_PG2 = torch.tensor([group for group in varied if len(group) == size])
    rewards_PG, recorded_PG = known_PG2.unbind(dim=2)
    zeros_PG, valid_PG = torch.zeros_like(rewards_PG), torch.ones_like(rewards_PG, dtype=torch.bool)
    estimates = {
        name: kind().estimate(rewards_PG, zeros_PG, valid_PG, std_floor=0.0)
        for name, kind in ADVANTAGES.items()
        if not kind.follows_loss
    }
    estimates["grpo, with the sample deviation"] = estimates["grpo"] * math.sqrt((size - 1) / size)
    gaps = {name: float((own - recorded_PG).abs().max()) for name, own in estimates.items()}
    nearest = min(gaps, key=lambda name: gaps[name])
    bound = _SAME_ADVANTAGE * float(recorded_PG.abs().max())
    same = [name for name, gap in gaps.items() if gap <= bound]
    groups_of = f"of {len(known_PG2):,} groups of {size}"
    says = f"{' and '.join(same)} {'give' if same[1:] else 'gives'} the recorded ones, {groups_of}"
    if not same:
        says = f"no estimator here gives them, {groups_of}; {nearest} is nearest"
    yield "advantages/largest difference", gaps[nearest], says


def verdicts(responses: Sequence[DumpedResponse]) -> list[VerdictPair]:
    """Verify the responses that have a text, a gold answer and a reward with ours."""
    graded = [
        GradedResponse(str(place), one.gold, one.text, one.reward > 0)
        for place, one in enumerate(responses)
        if one.gold and one.text and one.reward is not None
    ]
    if not graded:
        return []
    with open_scoring(None, RewardSettings()) as scorer:
        return compare_all(graded, scorer.score)


def otherwise(compared: Sequence[VerdictPair]) -> tuple[list[VerdictPair], Iterator[Line]]:
    """Return those of which both verifiers say what the reward does not, and their shares."""
    against = [
        row
        for row in compared
        if row.agree and not row.final.abstained and row.final.solved != row.graded.label
    ]
    wrong = sum(row.graded.label is True for row in against) / max(len(compared), 1)
    right = sum(row.graded.label is False for row in against) / max(len(compared), 1)
    lines: list[Line] = [
        ("verdicts/compared", len(compared), "with a text, a gold answer and a reward"),
        ("verdicts/rewarded, but wrong here", wrong, "final_answer and rule_answer both say so"),
        (
            "verdicts/not rewarded, but right here",
            right,
            "final_answer and rule_answer both say so",
        ),
    ]
    return against, iter(lines if compared else ())


def missing(dump: Dump) -> Iterator[str]:
    """Say what the dump does not hold, and which option of its trainer writes it."""
    responses = dump.responses
    if not any(one.trainer_R is not None for one in responses):
        yield (
            "mismatch: no log-probabilities of the trainer. slime and miles write them with "
            "--save-debug-train-data; the other trainers into no file."
        )
    elif not any(one.rollout_R is not None for one in responses):
        yield "mismatch: no log-probabilities of the engine (rollout_log_probs)."
    if any(one.reward is None for one in responses):
        yield "groups of one reward: rewards are missing in some responses or all."
    if not any(one.gold for one in responses):
        yield "verdicts: no gold answers that are a text or a number."
    if not any(one.advantage is not None for one in responses):
        yield "advantages: none are recorded, or not of single responses."
    yield "mismatch by layer: none of these trainers writes the experts that its own router chose."


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


def _mean_ratio(gaps: Sequence[NDArray[np.float32]]) -> tuple[float, float]:
    """Mean of exp(D) over finite tokens, at least one, and its standard error over responses.

    D as `gaps` has it. Infinite: the error of one response, both of a ratio beyond floats.
    """
    finite = [gap[np.isfinite(gap)].astype(np.float64) for gap in gaps]
    finite = [gap for gap in finite if gap.size]
    counts = np.array([gap.size for gap in finite])
    with np.errstate(over="ignore"):
        sums = np.array([np.exp(part).sum() for part in finite])
    mean = float(sums.sum() / counts.sum())
    if len(finite) < 2 or not math.isfinite(mean):
        return mean, math.inf
    spread = float(np.square(sums - mean * counts).sum()) * len(finite) / (len(finite) - 1)
    return mean, math.sqrt(spread) / int(counts.sum())


def _table(lines: Sequence[Line]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("")
    for quantity, value, says in lines:
        share = quantity.partition("/")[0] in {"groups", "length", "truncated", "verdicts"}
        if isinstance(value, int):
            text = f"{value:,}"
        elif share or "share" in quantity or "beyond" in quantity:
            text = f"{value:.1%}"
        else:
            text = f"{value:.4g}"
        table.add_row(Text(quantity), text, Text(says))
    return table


def print_dumps(
    files: Sequence[str], rewards: Sequence[str], show: int, out: str, page: str, model: str
) -> None:
    """Print a table for each dump.

    Args:
        files: that exist.
        rewards: columns of TRL's rewards; () takes all that may be.
        show: answers judged otherwise that are printed of each.
        out: JSON file for the numbers; '' writes none.
        page: HTML file for curves over the dumps and the responses of the last; '' writes none.
        model: folder with the tokenizer of the tokens on the page; '' shows their ids.
    """
    console = Console(highlight=False)
    tokenizer = load_tokenizer(Path(model)) if model else None
    numbers, loaded = {}, []
    for file in files:
        dump = read_dump(file, Path(file).read_bytes(), rewards)
        checked = verdicts(dump.responses)
        loaded.append((file, dump, checked))
        against, compared = otherwise(checked)
        lines = list(
            chain(
                signal(dump.responses), gaps(dump.responses), advantages(dump.responses), compared
            )
        )
        numbers[file] = {
            quantity: value if math.isfinite(value) else None for quantity, value, _ in lines
        }
        click.echo(f"{file}, written by {dump.trainer}")
        if dump.rewards:
            click.echo(f"reward: {' + '.join(dump.rewards)}")
        console.print(_table(lines))
        if against and show > 0:
            console.print(rows_table(against, show))
        for line in missing(dump):
            click.echo(f"not in {file}: {line}")
    if out:
        write_bytes(Path(out), canonical_json(numbers))
    if page:
        html = page_of_dumps(
            [(file, dump, numbers[file]) for file, dump, _ in loaded], loaded[-1][2], tokenizer
        )
        write_bytes(Path(page), html.encode())
        click.echo(f"page: {page}")
