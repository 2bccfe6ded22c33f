"""Multi-turn tool use: the tiny model learns to serve the customers of a sample shop.

pyflyte run workflows/shop.py shop
"""

from data_schemas.settings import PipelineSettings
from data_schemas.shop_presets import SHOP
from tasks.platform.entry_point import entry_point
from workflows.seeds import three_seeds


@entry_point
def shop(settings: PipelineSettings = SHOP, store: str = "runs") -> str:
    """Run the pipeline on the sample shop with three seeds and pool their results.

    A response has several turns: the policy calls tools, the shop answers, and success is judged by
    the final state of its records. No customer of the held-out cases is in a training row.

    Args:
        settings: of all three runs; their seeds are replaced.
        store: folder or s3:// prefix where artifacts, lineage and reports are kept.

    Returns:
        The HTML report of all three together.
    """
    return three_seeds(settings=settings, store=store, sources="")
