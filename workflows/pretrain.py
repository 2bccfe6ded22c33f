"""Pretrain the tiny base model that ships with the project.

pyflyte run workflows/pretrain.py pretrain
"""

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef
from data_schemas.settings import PretrainSettings
from tasks.platform.entry_point import entry_point
from tasks.stages.chain import link, wire
from tasks.stages.foundation import pretrain as train_base
from tasks.stages.opening import open_store
from workflows.parts.chain import END, ending

CHAIN = (
    link("context", open_store, "store", constants={"workflow": "pretrain", "last": END}),
    link("base", train_base, "settings", "context"),
    ending("base.uri"),
)


@entry_point
def pretrain(
    settings: PretrainSettings = presets.SHIPPED_BASE, store: str = "runs"
) -> CheckpointRef:
    """Train tokenizer and model on the seeded marketplace corpus.

    The default settings reproduce the shipped model: copy the folder this prints over
    tasks/training/foundation/base_model, or name it in the settings of post_training as base_model.

    Args:
        settings: steps, batch, learning rate, vocabulary and seed.
        store: folder or s3:// prefix where artifacts and lineage are kept.

    Returns:
        The model, a Hugging Face directory.
    """
    return wire(CHAIN, settings=settings, store=store)["base"]
