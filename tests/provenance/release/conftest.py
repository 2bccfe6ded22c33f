"""A store with its own MLflow: the same as for tests of lineage."""

from tests.provenance.lineage.conftest import execution, store

__all__ = ["execution", "store"]
