"""Warnings of Megatron and of torch's collectives that tell nobody what to do."""

import warnings

MODULES = (
    r"megatron\.core(\.|$)",  # that this is a CPU, many times over
    r"torch\.distributed\.c10d_logger$",  # names that Megatron calls collectives by
)


def silence() -> None:
    """Drop them from now on; to be called before anything of Megatron is imported."""
    for module in MODULES:
        warnings.filterwarnings("ignore", module=module)
