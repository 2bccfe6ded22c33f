"""The table of adapters, and the function that reads one source.

An adapter turns one raw row into problems and demonstrations, or refuses it with a
reason. A table needs no adapter but a mapping file (`data_schemas/mappings.py`). What no mapping
can say is such a function and one line in ADAPTERS.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from pydantic import ValidationError

from data_schemas.mappings import ColumnMapping
from data_schemas.references import ObjectReference, is_reference
from data_schemas.rows import OUTSIDE, Outcome, Problem, QuarantinedItem
from data_schemas.suites import Selection
from tasks.curation import sample_hybrid
from tasks.curation.adapters.commerce import ae110k, oa_mine, prdect_id
from tasks.curation.adapters.contests import apps, code_contests, humaneval, livecodebench
from tasks.curation.adapters.environments import bfcl_multi_turn, environments
from tasks.curation.adapters.episodes import episodes, sample_purchases, sample_shop, sample_wishes
from tasks.curation.adapters.general import generated, ifeval, m_ifeval, prompt_jsonl, sample
from tasks.curation.adapters.logic import bbh, gpqa, knights_knaves, zebra_logic
from tasks.curation.adapters.mapped import language_in, read_mapped
from tasks.curation.adapters.media import av_speakerbench_blind
from tasks.curation.adapters.reasoning import gsm8k, math_train, mbpp, mgsm, olympiadbench
from tasks.curation.adapters.tools import api_bank, bfcl, tau_bench_retail, toolrl_rlla, xlam
from tasks.curation.generated import chains, ecommerce, safety, school
from tasks.curation.items import Item, refuse_row
from tasks.curation.rows import SUFFIXES, BadRow, RawRow, UnreadableRow, read_rows
from tasks.errors import SettingsError
from tasks.plugins import Table, attribute, load, pin
from tasks.store.files import sha256_file

EVERY_FILE = tuple(f"*{suffix}" for suffix in SUFFIXES)


class AdapterFunction(Protocol):
    """An adapter's function; one of a user's own is a source: `my_adapter.py:name=rows.jsonl`."""

    def __call__(self, row: RawRow) -> list[Item]:
        """Return at least one item.

        Raises:
            BadRow: the row yields no item; it is quarantined with this reason.
        """
        ...


@dataclass(frozen=True, slots=True)
class Adapter:
    """How one kind of raw row is read."""

    read: Callable[[RawRow], list[Item]]
    """As `AdapterFunction`."""
    columns: tuple[str, ...]
    """Without one of these a row is refused."""
    files: tuple[str, ...] = EVERY_FILE
    """Patterns of the files that it reads in a folder."""
    generate: Callable[[int, Path], None] | None = None
    """Writes its files from a seed into a folder: then a source needs no path."""


_REQUEST = ("id", "language", "prompt")
_EPISODE = ("domain", "language", "messages", "verifier", "answer")

_PROMPT = ("domain", "language", "prompt")
_BOTH = ("problems.jsonl", "demonstrations.jsonl")


def _own_adapter(reference: str) -> Adapter:
    """Make the entry of an adapter that a source names by reference; an Adapter stays as it is."""
    own = attribute(reference)
    return own if isinstance(own, Adapter) else Adapter(load(reference, AdapterFunction), ())


_ENTRIES = {
    "sample_world": Adapter(sample, ("task", "language", "question"), _BOTH),
    **{
        mode: Adapter(partial(sample_hybrid.read, mode), ("task", "language", "question"), _BOTH)
        for mode in sample_hybrid.SWITCHES
    },
    "sample_shop": Adapter(sample_shop, _EPISODE, _BOTH),
    "sample_wishes": Adapter(sample_wishes, _EPISODE, _BOTH),
    "sample_purchases": Adapter(
        sample_purchases, ("domain", "language", "messages", "answer"), _BOTH
    ),
    "sample_harmful": Adapter(safety.harmful, _REQUEST, (safety.FILE,)),
    "sample_harmless": Adapter(safety.harmless, _REQUEST, (safety.FILE,)),
    **{name: Adapter(read, _PROMPT, (ecommerce.FILE,)) for name, read in ecommerce.READERS.items()},
    **{
        name: Adapter(generated(name, f"the generated {domain} questions"), _PROMPT, _BOTH)
        for name, domain in school.DOMAINS.items()
    },
    chains.TAUGHT: Adapter(generated(chains.TAUGHT, chains.ABOUT[chains.TAUGHT]), _PROMPT, _BOTH),
    **{
        name: Adapter(generated(name, chains.ABOUT[name]), _PROMPT, (chains.PROBLEMS,))
        for name in chains.HELD_OUT
    },
    "episodes": Adapter(episodes, _EPISODE),
    "environments": Adapter(environments, ("library", "environment", "domain", "language")),
    "prompt_jsonl": Adapter(prompt_jsonl, _PROMPT),
    "ae110k": Adapter(ae110k, ("input", "target_scores"), ("ae-110k*.jsonl",)),
    "oa_mine": Adapter(oa_mine, ("input", "target_scores"), ("oa-mine*.jsonl",)),
    "prdect_id": Adapter(prdect_id, ("id", "Product Name", "Category")),
    "gsm8k": Adapter(gsm8k, ("question", "answer")),
    "math_train": Adapter(math_train, ("problem", "answer")),
    "mgsm": Adapter(mgsm, ("question", "gold", "lang")),
    "mbpp": Adapter(mbpp, ("text", "test_list")),
    "olympiadbench": Adapter(olympiadbench, ("question", "final_answer")),
    "humaneval": Adapter(humaneval, ("prompt", "entry_point", "test")),
    "apps": Adapter(apps, ("question", "input_output")),
    "code_contests": Adapter(code_contests, ("description",)),
    "livecodebench": Adapter(
        livecodebench, ("question_content", "public_test_cases", "private_test_cases")
    ),
    "bbh": Adapter(bbh, ("input", "target")),
    "knights_knaves": Adapter(knights_knaves, ("quiz", "names", "solution")),
    "zebra_logic": Adapter(zebra_logic, ("puzzle", "solution")),
    "gpqa": Adapter(
        gpqa,
        ("Question", "Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3))),
    ),
    "av_speakerbench_blind": Adapter(av_speakerbench_blind, ("question", "choices", "answer")),
    "bfcl": Adapter(bfcl, ("id", "question", "function")),
    "bfcl_multi_turn": Adapter(
        bfcl_multi_turn,
        ("id", "question", "initial_config", "involved_classes", "ground_truth"),
        ("*multi_turn_base*.jsonl", "*multi_turn_miss*.jsonl", "*multi_turn_long*.jsonl"),
    ),
    "toolrl_rlla": Adapter(toolrl_rlla, ("instruction", "input", "output")),
    "xlam": Adapter(xlam, ("query", "tools", "answers")),
    "api_bank": Adapter(api_bank, ("system", "user", "answer")),
    "tau_bench_retail": Adapter(
        tau_bench_retail, ("instruction", "actions"), ("tasks*.jsonl", "*.parquet")
    ),
    "ifeval": Adapter(ifeval, ("prompt", "instruction_id_list", "kwargs")),
    "m_ifeval": Adapter(m_ifeval, ("prompt", "instruction_id_list", "kwargs"), ("??_input.jsonl",)),
}
ADAPTERS: Table[Adapter] = Table(_ENTRIES, _own_adapter)
"""By name: a built-in one is a function and a line above."""


def read_file(
    name: str,
    source: int,
    path: Path,
    mapping: ColumnMapping | None = None,
    verifier: str = "",
) -> Iterator[list[Item] | QuarantinedItem]:
    """Yield the items of every raw row in order, or the reason why there are none.

    Args:
        name: of the adapter or the mapping.
        source: position of the source in the settings.
        path: of the file.
        mapping: reads the rows instead of an adapter.
        verifier: scores the problems instead of the one that their rows name.
    """
    return adapt(name, source, path, read_rows(path), mapping, verifier=verifier)


def adapt(
    name: str,
    source: int,
    path: Path,
    rows: Iterable[RawRow | UnreadableRow],
    mapping: ColumnMapping | None = None,
    select: Mapping[str, Selection] = MappingProxyType({}),
    verifier: str = "",
) -> Iterator[list[Item] | QuarantinedItem]:
    """Yield the items of every row in order, or the reason why there are none; see `read_file`.

    Rows that `select` leaves out are dropped; a row without a column of it is quarantined.
    """
    # A mapping file and an adapter of one's own may name verifiers of one's own; a row may not.
    may_name_code = mapping is not None or is_reference(name)
    pins: dict[str, str] = {}
    source_name = name
    if mapping is not None:
        if is_reference(mapping.verifier):
            mapping = mapping.model_copy(update={"verifier": pin(mapping.verifier)})
        read = partial(read_mapped, mapping, language=language_in(path))
    elif name in ADAPTERS:
        read = ADAPTERS[name].read
        reference = ObjectReference.parse(name)
        source_name = reference.name if reference else name
    else:
        detail = f"{name!r} is not one of {', '.join(sorted(ADAPTERS))}"
        yield refuse_row(name, path.name, sha256_file(path), "unknown_adapter", detail)
        return
    for row in rows:
        if isinstance(row, UnreadableRow):
            problem = row.problem
            yield refuse_row(source_name, row.key, row.source_row, problem.reason, problem.detail)
            continue
        try:
            if unwanted := _unwanted(row, select):
                yield refuse_row(
                    source_name, row.key, row.source_row, "not_selected", unwanted, Outcome.DROPPED
                )
                continue
            items = _pinned(read, row, pins) if may_name_code else _without_code(read, row)
        except SettingsError:  # a refusal would stay in a cache after the user has acted
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            yield _refuse(source_name, row, error)
        else:
            of_source = [replace(item, source=source) for item in items] if source else items
            yield [_with_verifier(item, verifier) for item in of_source] if verifier else of_source


def _without_code(read: Callable[[RawRow], list[Item]], row: RawRow) -> list[Item]:
    """Read a row that must not name code to run: anybody may have written it.

    Raises:
        BadRow: it does.
    """
    verifier = str(row.fields.get("verifier", "")).strip()
    # Before an adapter looks it up. An environment of another library is code, too: its own
    # adapters, which settings choose, are the only ones that make such problems.
    if is_reference(verifier) or verifier == OUTSIDE:
        raise BadRow("code_in_row", f"verifier is {verifier!r}")
    items = read(row)
    for item in items:
        if isinstance(item.record, Problem) and is_reference(item.record.verifier):
            raise BadRow("code_in_row", f"verifier is {item.record.verifier!r}")
    return items


def _with_verifier(item: Item, verifier: str) -> Item:
    """Let a verifier that the settings name score an item; the answer stays as it is."""
    if isinstance(item.record, Problem):
        problem = item.record.model_copy(update={"verifier": verifier})
        return replace(item, record=problem)
    if item.answers is None:
        return item
    return replace(item, answers=item.answers.model_copy(update={"verifier": verifier}))


def _pinned(read: Callable[[RawRow], list[Item]], row: RawRow, pins: dict[str, str]) -> list[Item]:
    return [_with_pins(item, pins) for item in read(row)]


def _with_pins(item: Item, pins: dict[str, str]) -> Item:
    """Pin the verifier of an item if it is one of a user's own; `pins` has those seen before.

    Raises:
        SettingsError: there is no such verifier.
    """
    record, answers = item.record, item.answers
    problem = record if isinstance(record, Problem) else answers
    if problem is None or not is_reference(problem.verifier):
        return item
    if problem.verifier not in pins:
        pins[problem.verifier] = pin(problem.verifier)
    pinned = problem.model_copy(update={"verifier": pins[problem.verifier]})
    return replace(item, record=pinned) if record is problem else replace(item, answers=pinned)


def _refuse(name: str, row: RawRow, error: Exception) -> QuarantinedItem:
    """Say why an adapter could not read a row."""
    match error:
        case BadRow():
            reason, detail = error.reason, error.detail
        case ValidationError():
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "row"
            reason, detail = "schema", f"{where}: {first['msg']}"
        case _:  # a nested field does not have the shape that this public set documents
            reason, detail = "malformed", repr(error)
    return refuse_row(name, row.key, row.source_row, reason, detail)


def _unwanted(row: RawRow, select: Mapping[str, Selection]) -> str:
    """Say which value of a row is not selected; '' if the row is read.

    Raises:
        BadRow: the row lacks a column.
    """
    for column, values in select.items():
        if column not in row.fields:
            raise BadRow("missing_column", f"{column!r}, by which rows are selected")
        if row.fields[column] not in values:
            return f"{column} is {row.fields[column]!r}"
    return ""
