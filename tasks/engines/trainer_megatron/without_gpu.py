# pyright: reportMissingImports=false
"""Megatron-core on a machine without CUDA.

Megatron 0.16.1 asks for CUDA by name in its Python code (`torch.cuda.current_device()`,
`device="cuda"`, `tensor.cuda()`, `param.type() == "torch.cuda.FloatTensor"`). This module
replaces these names in the compiled functions of megatron.core: `torch.cuda` becomes
`torch.cpu`, torch's equivalent for device-agnostic code. torch itself is not changed, so other
libraries in the process (transformers, vLLM) are not affected.

Upgrading Megatron: 0.17 and later need Python 3.12 (0.19.2 is the newest), so the whole version
set changes, including the torch and vLLM wheels. In 0.19.2 the names of `SPELLINGS` still occur,
the NameError is fixed, local norms still refuse sequence parallelism, PackedSeqParams has more
fields, and grouped experts have no legacy switch: review `install`, model.py
and the optimizer's workarounds, and set VERSION; the tests of this package show what broke.
"""

import importlib
import inspect
import sys
import warnings
from types import CodeType, FunctionType, ModuleType

import torch

from tasks.errors import SettingsError

VERSION = "0.16.1"
SPELLINGS = {
    "cuda": "cpu",
    "torch.cuda.FloatTensor": "torch.FloatTensor",
    "torch.cuda.HalfTensor": "torch.HalfTensor",
    "torch.cuda.BFloat16Tensor": "torch.BFloat16Tensor",
}
AREAS = (
    "parallel_state",
    "models.gpt",
    "distributed",
    "optimizer",
    "pipeline_parallel",
    "dist_checkpointing.serialization",
    "dist_checkpointing.strategies.fully_parallel",
    "dist_checkpointing.strategies.torch",
)
"""Modules imported before the replacement; modules imported later are not changed."""


class _Moment:
    """An event or a stream on a CPU: all work is already complete."""

    def wait_stream(self, stream: object) -> None:
        """Do nothing."""

    def record_event(self) -> "_Moment":
        """This moment."""
        return self

    def synchronize(self) -> None:
        """Nothing to wait for."""


def install() -> bool:
    """Make megatron.core run on the CPU; do nothing where CUDA is. Safe to call again.

    Returns:
        Whether Megatron runs on the CPU now.

    Raises:
        SettingsError: another version of megatron-core is installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing Transformer Engine and Apex
        core = importlib.import_module("megatron.core")
        for area in AREAS:
            importlib.import_module(f"megatron.core.{area}")
    check_version(core.__version__)
    if torch.cuda.is_available():
        return False
    for name, module in list(sys.modules.items()):
        if name.startswith("megatron.core"):
            _respell_module(module)
    _replace_random_states()
    _mend_moe()
    return True


def check_version(installed: str) -> None:
    """Refuse a version of megatron-core for which the replacements were not reviewed.

    Raises:
        SettingsError: names both versions.
    """
    if installed != VERSION:
        raise SettingsError(
            f"megatron-core {installed} is installed; engines.trainer 'megatron' is "
            f"built for {VERSION}: build the environment of containers/lock_engines.txt"
        )


def _respell_module(module: ModuleType) -> None:
    for member in list(vars(module).values()):
        owned = vars(member).values() if isinstance(member, type) else [member]
        for one in owned:
            function = _plain(one)
            if function is not None and function.__module__ == module.__name__:
                function.__code__ = _respelt(function.__code__)


def _plain(member: object) -> FunctionType | None:
    """The function in a method, property or decorated function; None if there is none."""
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    if isinstance(member, property):
        member = member.fget
    member = inspect.unwrap(member) if callable(member) else member
    return member if isinstance(member, FunctionType) else None


def _respelt(code: CodeType) -> CodeType:
    return code.replace(
        co_names=tuple("cpu" if name == "cuda" else name for name in code.co_names),
        co_consts=tuple(_respelt_constant(constant) for constant in code.co_consts),
    )


def _respelt_constant(constant: object) -> object:
    match constant:
        case str():
            return SPELLINGS.get(constant, constant)
        case tuple():
            return tuple(_respelt_constant(one) for one in constant)
        case CodeType():
            return _respelt(constant)
    return constant


def seed(number: int) -> None:
    """Seed Megatron's named random streams, as it does on a GPU."""
    random = importlib.import_module("megatron.core.tensor_parallel.random")
    state = torch.Generator().manual_seed(number).get_state()
    names = (
        random._DATA_PARALLEL_RNG_TRACKER_NAME,
        random._MODEL_PARALLEL_RNG_TRACKER_NAME,
        random._EXPERT_PARALLEL_RNG_TRACKER_NAME,
    )
    random.get_cuda_rng_tracker().set_states(dict.fromkeys(names, state))


def _replace_random_states() -> None:
    """Implement Megatron's named random streams with states of the CPU generator."""
    random = importlib.import_module("megatron.core.tensor_parallel.random")

    def get(*_: object, **__: object) -> torch.Tensor:
        return torch.get_rng_state()

    def put(state: torch.Tensor, *_: object, **__: object) -> None:
        torch.set_rng_state(state)

    vars(random).update(_get_cuda_rng_state=get, _set_cuda_rng_state=put)


def _mend_moe() -> None:
    """Fix three places of the MoE layer that assume CUDA and Transformer Engine."""
    moe = importlib.import_module("megatron.core.transformer.moe.moe_utils")
    vars(moe).update(te_general_gemm=None)  # a NameError without Transformer Engine
    dispatcher = importlib.import_module("megatron.core.transformer.moe.token_dispatcher")
    dispatcher.MoEAlltoAllTokenDispatcher.cuda_dtoh_stream = _Moment()

    def to_cpu(tensor: object, as_numpy: bool = False, record_stream: bool = False) -> object:
        """Convert splits to numbers; Megatron does so only for GPU tensors."""
        return tensor.numpy() if as_numpy and isinstance(tensor, torch.Tensor) else tensor

    vars(dispatcher).update(maybe_move_tensor_to_cpu=to_cpu)
