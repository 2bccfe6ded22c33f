"""What the project imports from transformers, from the modules that define it.

The package's own `__init__` names every model: to check one import, a checker reads 2,500 files.
"""

from transformers.configuration_utils import PreTrainedConfig as PreTrainedConfig
from transformers.generation.configuration_utils import GenerationConfig as GenerationConfig
from transformers.modeling_utils import AttentionInterface as AttentionInterface
from transformers.modeling_utils import PreTrainedModel as PreTrainedModel
from transformers.models.auto.configuration_auto import AutoConfig as AutoConfig
from transformers.models.auto.modeling_auto import AutoModel as AutoModel
from transformers.models.auto.modeling_auto import AutoModelForCausalLM as AutoModelForCausalLM
from transformers.models.auto.modeling_auto import (
    AutoModelForSequenceClassification as AutoModelForSequenceClassification,
)
from transformers.models.auto.tokenization_auto import AutoTokenizer as AutoTokenizer
from transformers.models.glm4_moe.configuration_glm4_moe import Glm4MoeConfig as Glm4MoeConfig
from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeForCausalLM as Glm4MoeForCausalLM
from transformers.models.qwen3_moe.configuration_qwen3_moe import Qwen3MoeConfig as Qwen3MoeConfig
from transformers.models.qwen3_moe.modeling_qwen3_moe import (
    Qwen3MoeForCausalLM as Qwen3MoeForCausalLM,
)
from transformers.tokenization_utils_base import PreTrainedTokenizerBase as PreTrainedTokenizerBase
from transformers.tokenization_utils_tokenizers import TokenizersBackend
from transformers.utils.quantization_config import GgufConfig as GgufConfig

PretrainedConfig = PreTrainedConfig
PreTrainedTokenizerFast = TokenizersBackend
