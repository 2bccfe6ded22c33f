# pyright: reportMissingImports=false
"""Megatron's process groups, with what its parts need on a CPU."""

import gc
import importlib
import inspect
import sys
import warnings
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

import torch
from torch import distributed

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.process_group import COLLECTIVE_LIMIT, join_world
from tasks.errors import SettingsError

# Megatron-core on a machine without CUDA.
#
# Megatron 0.16.1 asks for CUDA by name in its Python code (`torch.cuda.current_device()`,
# `device="cuda"`, `tensor.cuda()`, `param.type() == "torch.cuda.FloatTensor"`). This module
# replaces these names in the compiled functions of megatron.core: `torch.cuda` becomes
# `torch.cpu`, torch's equivalent for device-agnostic code. torch itself is not changed, so other
# libraries in the process (transformers, vLLM) are not affected.
#
# Upgrading Megatron: 0.17 and later need Python 3.12 (0.19.2 is the newest), so the whole version
# set changes, including the torch and vLLM wheels. In 0.19.2 the names of `SPELLINGS` still occur,
# the NameError is fixed, local norms still refuse sequence parallelism, PackedSeqParams has more
# fields, and grouped experts have no legacy switch: review `install`, model.py
# and the optimizer's workarounds, and set VERSION; the tests of this package show what broke.

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


# Filters for warnings of Megatron and of torch's collectives that need no action.

MODULES = (
    r"megatron\.core(\.|$)",  # that this is a CPU, many times over
    r"torch\.distributed\.c10d_logger$",  # names that Megatron calls collectives by
)


def silence() -> None:
    """Install the filters; call before importing Megatron."""

    for module in MODULES:
        warnings.filterwarnings("ignore", module=module)


# Parallel groups: the ranks of this process in Megatron's parallel groups.
#
# Order of ranks is Megatron's: tensor fastest, then context, then data, then pipeline. The
# experts of a layer are spread over `expert` ranks out of tensor x context x data; a single
# expert is never divided (expert tensor parallel is 1).

SEED = 1234
"""Training has nothing random (no dropout), but Megatron requires seeded streams."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Sizes of the parallel groups and this process's ranks in them."""

    world: int
    rank: int
    device: torch.device
    tensor: int
    tensor_rank: int
    pipeline: int
    pipeline_rank: int
    expert: int
    expert_rank: int
    context: int
    context_rank: int
    data: int
    """Data-parallel replicas of the non-expert weights, context parallelism not counted."""
    data_rank: int
    tensor_group: distributed.ProcessGroup
    pipeline_group: distributed.ProcessGroup
    expert_group: distributed.ProcessGroup
    context_group: distributed.ProcessGroup
    data_group: distributed.ProcessGroup
    data_context_group: distributed.ProcessGroup

    @property
    def is_first_stage(self) -> bool:
        """Whether this rank holds the embedding."""
        return self.pipeline_rank == 0

    @property
    def is_last_stage(self) -> bool:
        """Whether this rank computes logits."""
        return self.pipeline_rank == self.pipeline - 1


def initialise(layout: LayoutSettings) -> Ranks:
    """Join Megatron's parallel groups, forming them first if this process has none.

    Without torchrun's environment the process is a world of its own.

    Raises:
        SettingsError: the layout does not divide the world, or differs from the one this
            process was started with.
    """
    on_cpu = install()
    from megatron.core import parallel_state  # after install: importing it warns otherwise

    device = join_world()
    _divide(layout, distributed.get_world_size())
    if parallel_state.model_parallel_is_initialized() and not _is_registered(
        parallel_state.get_tensor_model_parallel_group()
    ):
        # Another engine destroyed the default group of these groups: they are created again.
        # Only safe with one process; other ranks might still use the old groups.
        parallel_state.destroy_model_parallel()
    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=layout.tensor,
            pipeline_model_parallel_size=layout.pipeline,
            context_parallel_size=layout.context,
            expert_model_parallel_size=layout.expert,
            expert_tensor_parallel_size=1,
            distributed_timeout_minutes=round(COLLECTIVE_LIMIT.total_seconds() / 60),
        )
        _seed(on_cpu=on_cpu)
    ranks = _ranks(device)
    actual = (ranks.tensor, ranks.pipeline, ranks.context, ranks.expert)
    requested = (layout.tensor, layout.pipeline, layout.context, layout.expert)
    if actual != requested:
        raise SettingsError(
            f"layout (tensor, pipeline, context, expert) is {requested}, but this process already "
            f"trains with {actual}; one process has one layout"
        )
    return ranks


def free_memory() -> None:
    """Free what nothing but itself refers to, as the hooks and buffers of a model do."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _is_registered(group: distributed.ProcessGroup) -> bool:
    """Whether a group belongs to the current default group."""
    try:
        distributed.get_rank(group)
    except ValueError:
        return False
    return True


def _divide(layout: LayoutSettings, world: int) -> None:
    dense = layout.tensor * layout.pipeline * layout.context
    if world % dense:
        raise SettingsError(
            f"layout.tensor x pipeline x context is {dense}, which does not divide "
            f"the {world} processes"
        )
    if world % (layout.expert * layout.pipeline):
        raise SettingsError(
            f"layout.expert x pipeline is {layout.expert * layout.pipeline}, which does not "
            f"divide the {world} processes"
        )


def _seed(*, on_cpu: bool) -> None:
    if on_cpu:
        seed(SEED)
        return
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    model_parallel_cuda_manual_seed(SEED)


def _ranks(device: torch.device) -> Ranks:
    from megatron.core import parallel_state as state

    return Ranks(
        world=distributed.get_world_size(),
        rank=distributed.get_rank(),
        device=device,
        tensor=state.get_tensor_model_parallel_world_size(),
        tensor_rank=state.get_tensor_model_parallel_rank(),
        pipeline=state.get_pipeline_model_parallel_world_size(),
        pipeline_rank=state.get_pipeline_model_parallel_rank(),
        expert=state.get_expert_model_parallel_world_size(),
        expert_rank=state.get_expert_model_parallel_rank(),
        context=state.get_context_parallel_world_size(),
        context_rank=state.get_context_parallel_rank(),
        data=state.get_data_parallel_world_size(),
        data_rank=state.get_data_parallel_rank(),
        tensor_group=state.get_tensor_model_parallel_group(),
        pipeline_group=state.get_pipeline_model_parallel_group(),
        expert_group=state.get_expert_model_parallel_group(),
        context_group=state.get_context_parallel_group(),
        data_group=state.get_data_parallel_group(),
        data_context_group=state.get_data_parallel_group(with_context_parallel=True),
    )
