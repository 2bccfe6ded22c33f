"""The held-out problems that a model was evaluated on, found by its statements."""

from data_schemas.arrow import read_table
from data_schemas.artifacts import StoreRef
from data_schemas.rows import HELD_OUT, Problem
from tasks.provenance.lineage.shipping import workplace
from tasks.provenance.lineage.statements import chain
from tasks.store.objects import localise


def held_out_of(statement: str, store: StoreRef) -> list[Problem]:
    """Return the problems of the last evaluation in a chain; [] if it has none.

    Args:
        statement: digest of the statement of a model or of its release.
        store: holds the chain.

    Raises:
        TamperError: the chain or the set was changed.
    """
    for one in reversed([*chain(store.uri, [statement]).values()]):
        curated = next((item for item in one.inputs if item.role == "curated"), None)
        if one.stage.startswith("evaluate/") and curated is not None:
            folder = localise(curated.uri, curated.digest, workplace(store))
            return read_table(folder / HELD_OUT, Problem)
    return []
