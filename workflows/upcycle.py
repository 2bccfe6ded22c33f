"""Upcycle a mixture of experts to Grove MoE, as a base model of the pipeline.

pyflyte run workflows/upcycle.py upcycle --model path/to/model
"""

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef
from data_schemas.upcycling import UpcyclingSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.foundation import ingest_base
from tasks.stages.foundation import upcycle as add_adjugates
from tasks.stages.opening import open_store


@entry_point
def upcycle(
    settings: UpcyclingSettings = presets.UPCYCLING,
    model: str = "",
    store: str = "runs",
) -> CheckpointRef:
    """Add an adjugate expert to every group of experts; the logits stay as they are.

    Name the folder this prints in the settings of post_training as base_model. Only the embedded
    engines have the layer.

    Args:
        settings: experts of a group, width and scale of an adjugate, seed.
        model: Hugging Face directory, s3:// prefix or models:/NAME@alias of a Qwen3-MoE; empty =
            the shipped one.
        store: folder or s3:// prefix where artifacts and lineage are kept.

    Returns:
        The model, a Hugging Face directory.
    """
    run, execution = open_store(store=store, workflow="upcycle")
    base = ingest_base(path=model, name="base", store=run, execution=execution)
    return add_adjugates(settings=settings, model=base, store=run, execution=execution)
