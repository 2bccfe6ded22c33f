"""The ways a model is divided in these tests."""

from data_schemas.machine_settings import LayoutSettings

LAYOUTS = {
    "one process": LayoutSettings(),
    "experts over 2": LayoutSettings(expert=2),
    "2 stages": LayoutSettings(pipeline=2),
    "tensors over 2": LayoutSettings(tensor=2),
    "tensors and experts over 2": LayoutSettings(tensor=2, expert=2),
    "2 stages of 2": LayoutSettings(tensor=2, pipeline=2, expert=2),
    "context over 2": LayoutSettings(context=2),
    "context and tensors over 2, experts over 4": LayoutSettings(context=2, tensor=2, expert=4),
}


def processes(layout: LayoutSettings) -> int:
    """The smallest world of a layout."""
    return layout.pipeline * max(layout.tensor * layout.context, layout.expert)
