"""Classes of a family for transformers, which derive from its own; imports transformers."""

from collections.abc import Sequence

from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.conversion_mapping import (
    get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping,
)
from transformers.core_model_loading import WeightConverter, WeightRenaming


def register_classes(
    config_class: type[PretrainedConfig],
    model_class: type[PreTrainedModel],
    conversions: Sequence[WeightConverter | WeightRenaming] = (),
) -> None:
    """Let the Auto classes open a type; once is enough, twice does no harm.

    Args:
        config_class: derived from a config of transformers, with a `model_type` of its own.
        model_class: derived from the model of that config; its files are converted as those are.
        conversions: of other names in its files, in addition.
    """
    kind = config_class.model_type
    parent = next(one for one in config_class.__mro__ if one.model_type != kind)
    AutoConfig.register(kind, config_class, exist_ok=True)
    AutoModelForCausalLM.register(config_class, model_class, exist_ok=True)
    inherited = get_checkpoint_conversion_mapping(parent.model_type) or []
    register_checkpoint_conversion_mapping(kind, [*inherited, *conversions], overwrite=True)
    # transformers would look for the parent's decorator in the source of the derived class.
    (base,) = (one for one in model_class.__bases__ if issubclass(one, PreTrainedModel))
    can_set = base._can_set_experts_implementation()
    model_class._can_set_experts_implementation_cached_value = can_set
