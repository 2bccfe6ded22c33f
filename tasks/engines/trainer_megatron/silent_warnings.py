"""Filters for warnings of Megatron and of torch's collectives that need no action."""

import warnings

MODULES = (
    r"megatron\.core(\.|$)",  # that this is a CPU, many times over
    r"torch\.distributed\.c10d_logger$",  # names that Megatron calls collectives by
)


def silence() -> None:
    """Install the filters; call before importing Megatron."""

    for module in MODULES:
        warnings.filterwarnings("ignore", module=module)
