"""Evidence files: written by the command of a study, read by documents, and compared with today.

Evidence is stale where today's settings or the code of a stage differ from those it was measured
with; a document then says so, and nobody has to remember it. The code of an engine that no cell of
the study opens is not part of that, nor is the copying of states to another machine, whose files
are compared by digest: they can stop a run, and change no number.
"""

import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pydantic
import torch

from data_schemas.machine_settings import RolloutKind, TrainerKind
from data_schemas.study import EvidenceCell, Measures, StudyEvidence, StudyPlan
from tasks.errors import DataError, SettingsError
from tasks.lab.study import cells, declaration
from tasks.lab.study.runs import find_run
from tasks.platform.cache_version import ROOT, code_digest, is_module, source_digest
from tasks.platform.resources import STAGES
from tasks.store.files import write_bytes

FOLDER = ROOT / "docs" / "evidence"
DIGITS = 6
"""Significant digits of a number in a file."""
ENGINES: dict[str, str] = {
    RolloutKind.VLLM: "tasks.engines.rollout_vllm",
    TrainerKind.MEGATRON: "tasks.engines.trainer_megatron",
}
"""Engines whose packages `tasks.engines.select` imports only where settings name them."""
COPYING = (
    "tasks.durability.upload",
    "tasks.durability.upload_claims",
    "tasks.durability.upload_nodes",
    "tasks.durability.durable",
)
"""What copies states, verified by sha256, changes no number of a study."""


def evidence_of(plan: StudyPlan, measures: Sequence[Measures]) -> StudyEvidence:
    """Compare the cells of a plan, and say what they were measured with."""
    study = declaration.study_of(plan)
    without = _without(plan)
    arms = cells.arms_of(measures, study.seeds)
    return StudyEvidence(
        name=plan.name,
        title=study.title,
        source=plan.source,
        command=plan.command,
        commit=commit(),
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=machine(),
        settings=plan.digest,
        code={
            name: code_digest(name, without)
            for name in find_run(study.run).stages(study.checkpoints)
        },
        seeds=study.seeds,
        variants={name: study.variants[name.partition(" on ")[0]].meaning for name in plan.against},
        against=plan.against,
        checkpoints=study.checkpoints,
        cells=cells.cells_of(arms, plan.against, study.checkpoints, study.gains),
    )


def machine() -> str:
    """Name what rounds sums: on another machine the same seeds end elsewhere."""
    return (
        f"{platform.machine()}, {processor()}, {torch.backends.cpu.get_cpu_capability()}, "
        f"{os.cpu_count()} cores, {platform.system()}, torch {torch.__version__}"
    )


def processor() -> str:
    """Name the processor as the kernel does; 'unnamed' where it does not."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unnamed"


def commit() -> str:
    """Name the commit of the repository, '+' if files differ from it; 'unknown' without git."""
    try:
        head = _git("rev-parse", "--short=9", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "*.py", "*.yaml")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+" if changed else head


def origin(command: str, *modules: str) -> dict[str, object]:
    """Say what wrote a file of measurements that is no study: the first keys of the file.

    Args:
        command: that wrote it.
        modules: that it measured; what they import is part of it.
    """
    return {
        "command": command,
        "commit": commit(),
        "code": {module: source_digest(module) for module in modules},
    }


def modules_changed(measured: Mapping[str, str]) -> tuple[str, ...]:
    """Name the modules that are gone, or of which today's source is another one."""
    return tuple(
        module
        for module, digest in measured.items()
        if not is_module(module) or source_digest(module) != digest
    )


def dumped(evidence: StudyEvidence) -> bytes:
    """Write evidence as JSON, a line per number, so that a change is readable."""
    fields = evidence.model_dump(mode="json", exclude={"cells"})
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items()]
    numbers = [
        f"  {json.dumps(name)}: {json.dumps(_rounded(cell))}"
        for name, cell in evidence.cells.items()
    ]
    body = ",\n".join([*lines, '"cells": {\n' + ",\n".join(numbers) + "\n}"])
    return ("{\n" + body + "\n}\n").encode()


def write(evidence: StudyEvidence, folder: str) -> None:
    """Write the evidence file of a study."""
    write_bytes(Path(folder) / f"{evidence.name}.json", dumped(evidence))


def read(name: str, folder: Path = FOLDER) -> StudyEvidence:
    """Read the evidence of a study.

    Raises:
        DataError: it was never measured, or somebody broke the file.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        raise DataError(f"there is no evidence of {name!r}; make evidence NAME={name} measures it")
    try:
        return StudyEvidence.model_validate_json(path.read_bytes())
    except pydantic.ValidationError as error:
        raise DataError(f"{path} is no evidence file; make evidence NAME={name}") from error


@cache
def changes_since(kept_name: str, folder: Path = FOLDER) -> tuple[str, ...]:
    """Name what differs today: 'settings', 'seeds' that the study names no more, and stages whose
    code is another one.
    """
    evidence = read(kept_name, folder)
    changed, without = [], ()
    try:
        plan = declaration.read_study(str(ROOT / evidence.source), "", _num_seeds(evidence.seeds))
        without = _without(plan)
        if plan.digest != evidence.settings:
            changed.append("settings")
        declared = declaration.study_of(declaration.read_study(str(ROOT / evidence.source)))
        if not {*evidence.seeds} <= {*declared.seeds}:
            changed.append("seeds")
    except SettingsError:
        changed.append("settings")
    changed += [
        name
        for name, digest in evidence.code.items()
        if name not in STAGES or code_digest(name, without) != digest
    ]
    return tuple(changed)


def _without(plan: StudyPlan) -> tuple[str, ...]:
    return COPYING + tuple(
        package
        for kind, package in ENGINES.items()
        if not any(f'"{kind}"' in cell.settings for cell in plan.cells)
    )


def _num_seeds(seeds: Sequence[int]) -> int:
    return len(seeds) if tuple(seeds) == tuple(range(len(seeds))) else 0


def _rounded(cell: EvidenceCell) -> dict[str, object]:
    fields = cell.model_dump(exclude_defaults=True)
    return {name: _short(value) for name, value in fields.items()}


def _short(value: object) -> object:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
    if isinstance(value, tuple):
        return [_short(one) for one in value]
    return value


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
