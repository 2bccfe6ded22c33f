"""Groups of suites among the sources: each is replaced by its members."""

from collections.abc import Iterable, Iterator

from data_schemas.settings import Source
from tasks.errors import SettingsError
from tasks.formats.benchmark_file import group_of, shipped_groups


def expand(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Replace every group by the suites in it, in order; a suite of two groups is read once.

    Raises:
        SettingsError: a group is a source to train on, contains itself, or has no folder for the
            data of a member.
    """
    expanded = [one for source in sources for one in _expanded(source, ())]
    return tuple(dict.fromkeys(expanded))


def _expanded(source: Source, within: tuple[str, ...]) -> Iterator[Source]:
    """Yield a source, or the members of the group that it names.

    Args:
        source: as it was written.
        within: names of the groups around it.
    """
    name = source.adapter
    if not source.evaluation and name in shipped_groups():
        raise SettingsError(
            f"{name} is a group of suites, and nothing is trained on a suite. Write "
            f"evaluation:{name} among the sources, or name it in --suites."
        )
    group = group_of(name) if source.evaluation else None
    if group is None:
        yield source
        return
    if name in within:
        raise SettingsError(f"{name} is a group of suites that contains itself. Remove it there.")
    for member in group.members:
        suite, _, path = member.partition("=")
        if path and not source.path:
            raise SettingsError(
                f"{name} reads {path} for its member {suite}. Give the folder that has it: "
                f"{name}=FOLDER."
            )
        update = {"adapter": suite, "path": f"{source.path.rstrip('/')}/{path}" if path else ""}
        yield from _expanded(source.model_copy(update=update), (*within, name))
