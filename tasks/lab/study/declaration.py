"""From the YAML file of a study to its cells: settings are resolved and checked before any work."""

import fnmatch
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from data_schemas import presets, sample_shop
from data_schemas.faults import did_you_mean, explain
from data_schemas.machine_settings import merged_over
from data_schemas.study import Study, StudyCell, StudyPlan, Variant
from tasks.errors import SettingsError
from tasks.formats.yaml_file import check, parse_yaml
from tasks.lab.study.runs import CellKind, find_run
from tasks.store.files import canonical_json

PRESETS: dict[str, BaseModel] = {
    **{name: presets.load(name) for name in presets.names()},
    "shop": sample_shop.SHOP,
    "wishes": sample_shop.WISHES,
}
PARENT = "parent"
"""Key of a settings file that names the preset or file that it changes."""
DEFAULTS = "defaults"
"""In place of a preset: the defaults of the run's settings."""


def read_study(of: str, against: str = "", num_seeds: int = 0) -> StudyPlan:
    """Read a declaration, or make one of two settings files.

    Args:
        of: file of a study; with `against`, a preset or settings file.
        against: preset or settings file that `of` is compared with; '' = `of` is a study.
        num_seeds: seeds 0, 1, ... instead of those of the study; 0 = those.

    Raises:
        SettingsError: a file is no study or settings, a variant is not valid, or a name is unknown.
    """
    command = f"pyflyte run workflows/lab/study.py study --of {of}"
    if against:
        study = _of_two(of, against)
        name, command = f"{Path(of).stem}-{Path(against).stem}", f"{command} --against {against}"
    else:
        name, fields = Path(of).stem, parse_yaml(_text(of), of)
        if isinstance(fields, dict) and "title" not in fields:
            raise SettingsError(
                f"--of {of} has no title, so it is no study; to compare two settings files, name "
                "the other one as --against"
            )
        study = check(fields, Study, "study", of)
    if num_seeds:
        study = study.model_copy(update={"seeds": tuple(range(num_seeds))})
        command = f"{command} --seeds {num_seeds}"
    run = find_run(study.run)
    arms = dict(_arms(study))
    base = Path() if against else Path(of).parent
    cells = tuple(
        _cell(study, run, name, arm, seed, base)
        for name, arm in arms.items()
        for seed in study.seeds
    )
    return StudyPlan(
        name=name,
        source=of,
        command=command,
        study=canonical_json(study).decode(),
        against={name: arm.variant.against for name, arm in arms.items()},
        cells=cells,
        digest=settings_digest(cells),
    )


def study_of(plan: StudyPlan) -> Study:
    """Return the declaration of a plan."""
    return Study.model_validate_json(plan.study)


def settings_digest(cells: tuple[StudyCell, ...]) -> str:
    """Hash what the cells do, in any order of theirs."""
    rows = sorted(json.dumps([c.variant, c.seed, c.settings, c.max_tokens]) for c in cells)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def apply(settings: BaseModel, changes: Mapping[str, object], where: str) -> BaseModel:
    """Merge changes over settings.

    Args:
        settings: complete.
        changes: nested by group, or by path with dots, whose first part may have wildcards.
        where: the variant, in messages.

    Raises:
        SettingsError: a path matches no group, or the result is not valid.
    """
    nested: dict[str, Any] = {}
    for path, value in changes.items():
        first, *rest = path.split(".")
        fields = type(settings).model_fields
        places = fnmatch.filter(fields, first) if "*" in first else [first]
        if not places:
            raise SettingsError(f"{where}: {path} matches none of {', '.join(fields)}")
        for place in places:
            _set(nested, [place, *rest], value)
    try:
        return type(settings).model_validate(merged_over(settings, nested))
    except ValidationError as error:
        raise SettingsError(f"{where}: {explain(error, type(settings))}") from error


def load_settings(name: str, model: type[BaseModel], folder: Path = Path()) -> BaseModel:
    """Look up a preset, or read a settings file and the one that it names as its parent.

    Args:
        name: of a preset, 'defaults', or path of a YAML file.
        model: of the settings.
        folder: that a path is relative to, if it is not found from here.

    Raises:
        SettingsError: there is neither, or it is of another kind.
    """
    if name == DEFAULTS:
        return model()
    if not name.endswith((".yaml", ".yml", ".json")):
        preset = PRESETS.get(name)
        if preset is None:
            advice = did_you_mean(name, list(PRESETS)) or f"choose from {', '.join(PRESETS)}"
            raise SettingsError(f"there is no preset {name!r}; {advice}, or name a .yaml file")
        if not isinstance(preset, model):
            raise SettingsError(f"the preset {name!r} has no {model.__name__}")
        return preset
    path = Path(name) if Path(name).exists() else folder / name
    content = parse_yaml(_text(str(path)), str(path))
    if not isinstance(content, dict):
        raise SettingsError(f"{path} has no settings by name")
    fields = cast("dict[str, object]", content)
    parent = str(fields.pop(PARENT, DEFAULTS))
    return apply(load_settings(parent, model, path.parent), fields, str(path))


class _Arm:
    """A variant on one of the models."""

    def __init__(self, variant: Variant, model: str | None) -> None:
        self.variant = variant
        self.model = model


def _arms(study: Study) -> list[tuple[str, _Arm]]:
    """Every variant on every model, with the name of the arm it is compared with."""
    first = next(iter(study.variants))
    arms: list[tuple[str, _Arm]] = []
    for model, folder in (study.models or {"": None}).items():
        suffix = f" on {model}" if model else ""
        for name, variant in study.variants.items():
            against = variant.against or first
            if against not in study.variants:
                advice = did_you_mean(against, list(study.variants))
                raise SettingsError(f"variants.{name}.against is {against!r}, no variant; {advice}")
            paired = variant.model_copy(update={"against": f"{against}{suffix}"})
            arms.append((f"{name}{suffix}", _Arm(paired, folder)))
    return arms


def _cell(study: Study, run: CellKind, name: str, arm: _Arm, seed: int, folder: Path) -> StudyCell:
    where = f"variants.{name}"
    settings = load_settings(arm.variant.settings or study.settings, run.settings, folder)
    settings = apply(settings, study.changes, "changes")
    settings = apply(settings, arm.variant.changes, where)
    if arm.model is not None:
        settings = apply(settings, {"base_model": arm.model}, where)
    seeds = {group: seed for group in study.seeded if group == "seed"}
    seeds |= {f"{group}.seed": seed for group in study.seeded if group != "seed"}
    settings = apply(settings, seeds, "seeded")
    return StudyCell(
        variant=name,
        seed=seed,
        run=study.run,
        settings=canonical_json(settings).decode(),
        checkpoints=study.checkpoints,
        max_tokens=study.max_tokens,
    )


def _of_two(of: str, against: str) -> Study:
    names = [Path(of).stem, Path(against).stem]
    if names[0] == names[1]:
        names = [of, against]
    return Study(
        title=f"{names[0]} against {names[1]}",
        variants={
            names[1]: Variant(settings=against, meaning=against),
            names[0]: Variant(settings=of, meaning=of),
        },
        gains=(("merged", "rl/two"),),
    )


def _set(nested: dict[str, Any], path: list[str], value: object) -> None:
    for name in path[:-1]:
        nested = nested.setdefault(name, {})
    if isinstance(value, Mapping) and isinstance(nested.get(path[-1]), dict):
        for name, one in cast("Mapping[str, object]", value).items():
            _set(nested[path[-1]], [name], one)
    else:
        nested[path[-1]] = dict(value) if isinstance(value, Mapping) else value


def _text(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
