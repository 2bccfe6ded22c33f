"""A folder that cannot be a base model is refused, with what it lacks."""

import json
import shutil

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tasks.errors import SettingsError
from tasks.models.architectures import opening_of_responses
from tasks.models.config_file import check_generation
from tasks.models.model_folder import SHIPPED, check_model_folder, local_folder
from tasks.training.foundation.base import shipped_base


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(shipped_base(), folder)
    return folder


def _edit(file, **changes):
    loaded = json.loads(file.read_text())
    for key, value in changes.items():
        loaded.pop(key, None)
        if value is not None:
            loaded[key] = value
    file.write_text(json.dumps(loaded))


def test_the_shipped_base_passes_its_own_check():
    check_model_folder(shipped_base())


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SettingsError, match="nowhere is not a folder"):
        check_model_folder(tmp_path / "nowhere")


def test_a_folder_without_a_config_is_no_model(tmp_path):
    with pytest.raises(SettingsError, match=r"config\.json is missing"):
        check_model_folder(tmp_path)


def test_a_damaged_config_is_named(copy):
    (copy / "config.json").write_text("{")

    with pytest.raises(SettingsError, match=r"config\.json cannot be read"):
        check_model_folder(copy)


def test_an_unsupported_architecture_is_refused(copy):
    _edit(copy / "config.json", model_type="gemma3")

    with pytest.raises(SettingsError, match="model_type 'gemma3'; supported are qwen3_moe"):
        check_model_folder(copy)


@pytest.mark.parametrize("under", ["", "thinker_config"])
def test_a_model_that_reads_more_than_text_is_told_how_to_give_its_language_model(copy, under):
    inner = {"text_config": {"model_type": "qwen3_vl_moe_text"}}
    _edit(copy / "config.json", model_type="qwen3_vl_moe", **({under: inner} if under else inner))

    with pytest.raises(SettingsError, match=r"language model \(qwen3_vl_moe_text\) as a folder"):
        check_model_folder(copy)


def test_missing_weights_are_reported(copy):
    (copy / "model.safetensors").unlink()

    with pytest.raises(SettingsError, match=r"no \*\.safetensors"):
        check_model_folder(copy)


def test_a_missing_tokenizer_is_reported(copy):
    (copy / "tokenizer.json").unlink()

    with pytest.raises(SettingsError, match=r"tokenizer\.json is missing"):
        check_model_folder(copy)


def test_a_missing_chat_template_is_reported(copy):
    (copy / "chat_template.jinja").unlink()

    with pytest.raises(SettingsError, match="has no chat template"):
        check_model_folder(copy)


def test_a_missing_end_token_is_reported(copy):
    _edit(copy / "tokenizer_config.json", eos_token=None)

    with pytest.raises(SettingsError, match="has no eos_token"):
        check_model_folder(copy)


def test_a_tokenizer_of_another_checkpoint_is_refused(copy):
    _edit(copy / "config.json", vocab_size=500)

    with pytest.raises(SettingsError, match=r"ids up to 767, but config\.json has vocab_size 500"):
        check_model_folder(copy)


def test_incomplete_weights_are_the_users_to_repair(copy):
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(SettingsError, match="not a complete safetensors file"):
        check_model_folder(copy)


def test_no_path_is_the_shipped_model_and_a_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert SHIPPED == local_folder("")
    assert tmp_path.resolve() / "model" == local_folder("model")


@pytest.mark.parametrize("path", ["s3://bucket/x", "models:/name@released"])
def test_a_model_elsewhere_has_no_folder_before_it_is_ingested(path):
    assert local_folder(path) is None


@pytest.mark.parametrize("path", ["gs://b/x", "https://host/x", "hf://a/b"])
def test_an_address_that_nobody_reads_is_no_folder_of_that_name(path):
    with pytest.raises(SettingsError, match=rf"^{path} is of an unknown kind"):
        local_folder(path)


@pytest.mark.parametrize(
    ("begun", "is_read"),
    [
        ("<think>", True),
        ("<think>\n\n</think>\n\n", True),
        ("</think>", True),
        ("<think>\nOkay, ", False),
        ("<think></think>The answer is ", False),
    ],
)
def test_a_template_may_begin_a_response_with_a_thought_and_nothing_else(copy, begun, is_read):
    template = copy / "chat_template.jinja"
    written = template.read_text()
    template.write_text(written.replace("assistant\n", f"assistant\n{begun}"))
    assert written != template.read_text()

    if is_read:
        check_model_folder(copy)
        assert begun == opening_of_responses(copy)
    else:
        with pytest.raises(SettingsError, match="begins the response with '<think>"):
            check_model_folder(copy)


@pytest.mark.parametrize(
    "begun", ["<thinking>\n", "<|begin_of_thought|>\n", "[THINK]", "<seed:think>", "Answer: "]
)
def test_words_that_only_a_prompt_has_begin_no_response(copy, begun):
    template = copy / "chat_template.jinja"
    template.write_text(template.read_text().replace("assistant\n", f"assistant\n{begun}"))

    with pytest.raises(
        SettingsError,
        match=f"begins the response with {begun.strip()!r}".replace("[", r"\[").replace("|", r"\|"),
    ):
        check_model_folder(copy)


def test_a_template_that_leaves_the_header_of_an_answer_to_the_model_is_refused(copy):
    turns = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    )
    (copy / "chat_template.jinja").write_text(turns)

    with pytest.raises(
        SettingsError, match=r"ends without '<\|im_start\|>assistant', which stands"
    ):
        check_model_folder(copy)


def test_a_template_in_which_the_question_ends_with_the_header_needs_no_other(copy):
    turns = (
        "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
        "{% else %} {{ m.content }}<|im_end|>{% endif %}{% endfor %}"
    )
    (copy / "chat_template.jinja").write_text(turns)

    check_model_folder(copy)


def test_a_blank_template_is_none(copy):
    (copy / "chat_template.jinja").write_text("")

    with pytest.raises(SettingsError, match="has no chat template"):
        check_model_folder(copy)


@pytest.mark.parametrize("entry", ["3", True, [3, "4"], 3.0])
def test_an_end_token_that_is_no_id_is_refused(copy, entry):
    _edit(copy / "generation_config.json", eos_token_id=entry)

    with pytest.raises(
        SettingsError, match=r"generation_config.json: eos_token_id has .* no token"
    ):
        check_model_folder(copy)


@pytest.mark.parametrize("entries", [{}, [["<|end|>"]], {"7": {"content": ["<|end|>"]}}])
def test_an_end_token_that_the_tokenizer_does_not_have_is_refused(copy, entries):
    _edit(copy / "tokenizer_config.json", eos_token="<|end|>", added_tokens_decoder=entries)

    with pytest.raises(SettingsError, match=r"has no token '<\|end\|>', the eos_token"):
        check_model_folder(copy)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "before quantisation"),
        (
            {"compression_config": {"quant_method": "compressed-tensors"}},
            "has a compression_config",
        ),
        (
            {"auto_map": {"AutoModelForCausalLM": "own.Own"}},
            r"an auto_map \(own.Own\), and qwen3_moe",
        ),
        ({"quantization": {"group_size": 64, "bits": 4}}, "has a quantization .*as they are"),
        ({"architectures": ["LlamaForCausalLM"]}, "engines go by one or the other"),
        ({"architectures": ["Qwen3MoeForSequenceClassification"]}, "engines go by one or the"),
    ],
)
def test_a_config_that_engines_would_read_differently_is_refused(copy, changes, message):
    _edit(copy / "config.json", **changes)

    with pytest.raises(SettingsError, match=message):
        check_model_folder(copy)


def test_two_templates_are_refused_if_they_render_a_chat_differently(copy):
    text = (copy / "chat_template.jinja").read_text()
    _edit(copy / "tokenizer_config.json", chat_template=text + "{# the same #}")
    check_model_folder(copy)

    _edit(copy / "tokenizer_config.json", chat_template=text.replace("<|im_end|>", "</s>"))
    with pytest.raises(SettingsError, match=r"otherwise than the chat_template of tokenizer_conf"):
        check_model_folder(copy)


def test_a_map_of_code_that_opens_no_model_is_no_fault(copy):
    _edit(copy / "config.json", auto_map={"AutoConfig": "own.OwnConfig"})

    check_model_folder(copy)


def test_weights_in_gguf_alone_are_named_with_what_converts_them(tmp_path):
    file = tmp_path / "m-Q4_K_M.gguf"
    file.write_bytes(b"GGUF")

    for path in (tmp_path, file):
        with pytest.raises(SettingsError, match=r"in GGUF.*\.gguf_file .* OUT writes one"):
            check_model_folder(path)
    file.rename(tmp_path / "notes.txt")
    with pytest.raises(SettingsError, match=r"config\.json is missing"):
        check_model_folder(tmp_path)


def test_a_folder_of_checkpoints_names_one(copy):
    copy.rename(copy.parent / "checkpoint-100")
    copy.mkdir()
    (copy.parent / "checkpoint-100").rename(copy / "checkpoint-100")

    with pytest.raises(SettingsError, match=r"config.json is missing.*checkpoint-100 has one"):
        check_model_folder(copy)


def test_chat_templates_of_which_none_is_the_default_are_refused(copy):
    (copy / "chat_template.jinja").rename(copy / "template")
    text = (copy / "template").read_text()
    _edit(copy / "tokenizer_config.json", chat_template=[{"name": "rag", "template": text}])

    with pytest.raises(SettingsError, match="none is called default"):
        check_model_folder(copy)
    _edit(copy / "tokenizer_config.json", chat_template=[{"name": "default", "template": text}])
    check_model_folder(copy)


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_an_end_token_that_the_model_does_not_have_is_refused(copy, file):
    _edit(copy / file, eos_token_id=[763, 99_999])

    with pytest.raises(SettingsError, match=r"eos_token_id \[99999\] .* is no token of the model"):
        check_model_folder(copy)


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_an_end_that_is_a_piece_of_text_is_refused_and_a_control_token_is_none(copy, file):
    letter = Tokenizer.from_file(str(copy / "tokenizer.json")).token_to_id("I")
    _edit(copy / file, eos_token_id=[763, letter])

    with pytest.raises(SettingsError, match=rf"eos_token_id {letter} .* is 'I' .*, 763, or"):
        check_model_folder(copy)
    _edit(copy / file, eos_token_id=[763, 761])
    check_model_folder(copy)


def test_padding_that_is_a_piece_of_text_is_refused_and_the_end_token_is_none(copy):
    _edit(copy / "tokenizer_config.json", pad_token="I")

    with pytest.raises(SettingsError, match="pad_token 'I', a piece of text"):
        check_model_folder(copy)
    _edit(copy / "tokenizer_config.json", pad_token="<|im_end|>")
    check_model_folder(copy)


def test_a_class_that_reads_otherwise_than_the_file_of_the_tokenizer_is_refused(copy):
    _edit(copy / "tokenizer_config.json", tokenizer_class="Qwen2Tokenizer")
    with pytest.raises(SettingsError, match=r"'Qwen2Tokenizer', with which .* otherwise than"):
        check_model_folder(copy)

    _edit(copy / "tokenizer_config.json", tokenizer_class="GemmaTokenizer")
    with pytest.raises(SettingsError, match=r"'GemmaTokenizer', with which it cannot be opened"):
        check_model_folder(copy)

    _edit(copy / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    check_model_folder(copy)


def test_a_tokenizer_that_rewrites_blanks_is_refused(copy):
    file = copy / "tokenizer.json"
    control = json.loads(file.read_text())["added_tokens"]
    # Unigram: of byte-level BPE nothing is rewritten, whatever the setting says.
    letters = ["\u2581", *map(chr, range(33, 127))]
    own = Tokenizer(models.Unigram([(one, -1.0) for one in letters], letters.index("?")))
    own.pre_tokenizer, own.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    own.add_special_tokens([AddedToken(one["content"], special=True) for one in control])
    own.save(str(file))
    end = own.token_to_id("<|im_end|>")
    for name in ("config.json", "generation_config.json"):
        _edit(copy / name, eos_token_id=end)
    check_model_folder(copy)

    _edit(copy / "tokenizer_config.json", clean_up_tokenization_spaces=True)
    with pytest.raises(SettingsError, match="clean_up_tokenization_spaces"):
        check_model_folder(copy)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("temperature", -1.0), ("temperature", "hot"), ("temperature", True), ("top_p", 7.0)),
        *(("top_p", 0), ("min_p", -0.1), ("top_k", -3), ("top_k", 1.5), ("num_beams", 0)),
        *(("repetition_penalty", 0.0), ("max_length", -5), ("max_new_tokens", "many")),
    ],
)
def test_a_generation_that_nothing_can_follow_is_refused(copy, key, value):
    (copy / "generation_config.json").write_text(json.dumps({"eos_token_id": 1, key: value}))

    with pytest.raises(SettingsError, match=rf"generation_config\.json has {key} .*optional"):
        check_model_folder(copy)


def test_values_of_generation_that_have_no_effect_are_no_fault():
    check_generation({"do_sample": False, "temperature": 0.7, "top_p": None, "pad_token_id": -1})


def test_special_tokens_that_the_embedding_has_no_row_for_are_refused(copy):
    size = json.loads((copy / "config.json").read_text())["vocab_size"]
    names = [f"<extra_{number}>" for number in range(size)]
    _edit(copy / "tokenizer_config.json", additional_special_tokens=names)

    with pytest.raises(SettingsError, match="has token ids up to"):
        check_model_folder(copy)
