"""Arguments of a chat template are part of the folder: every program renders the same prompt."""

import json
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError
from transformers import AutoTokenizer

from data_schemas.artifacts import CandidateRef, Execution, StoreRef
from data_schemas.rows import Message, Role
from data_schemas.settings import ChatSettings
from tasks.engines.chat import closes_thought, load_tokenizer, opening_of, render_prompt
from tasks.errors import SettingsError
from tasks.models.model_folder import SHIPPED, check_model_folder, with_chat
from tasks.provenance.lineage.statements import load_statement
from tasks.stages.foundation import ingest_candidates
from tasks.store.interface import store_at

HYBRID = """
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}
{%- endif %}{{ style or '' }}{% endif %}"""
"""As Qwen3's: thinking is on unless it is switched off."""
TURNS = [{"role": "user", "content": "1 + 1?"}]


@pytest.fixture
def hybrid(tmp_path: Path) -> Path:
    folder = shutil.copytree(SHIPPED, tmp_path / "model")
    (folder / "chat_template.jinja").write_text(HYBRID)
    return folder


@pytest.mark.parametrize("arguments", [{"enable_thinking": False}, {"enable_thinking": True}, {}])
def test_a_template_with_arguments_renders_as_one_that_is_called_with_them(
    hybrid: Path, arguments: dict[str, bool | int | float | str]
):
    called = AutoTokenizer.from_pretrained(hybrid).apply_chat_template(
        TURNS, add_generation_prompt=True, tokenize=False, **arguments
    )
    with with_chat(hybrid, ChatSettings(arguments=arguments)) as folder:
        tokenizer = load_tokenizer(folder)
        message = Message(role=Role.USER, content="1 + 1?")

        assert called == tokenizer.decode(render_prompt(tokenizer, [message]).tolist())
        assert called == AutoTokenizer.from_pretrained(folder).apply_chat_template(
            TURNS, add_generation_prompt=True, tokenize=False
        )
        assert closes_thought(tokenizer) == (arguments == {"enable_thinking": False})
        assert opening_of(tokenizer) == (
            "<think>\n\n</think>\n\n" if closes_thought(tokenizer) else ""
        )


def test_whoever_calls_the_released_template_may_give_another_value(hybrid: Path):
    with with_chat(hybrid, ChatSettings(arguments={"enable_thinking": False})) as folder:
        text = AutoTokenizer.from_pretrained(folder).apply_chat_template(
            TURNS, add_generation_prompt=True, tokenize=False, enable_thinking=True
        )

    assert "<think>" not in text


def test_a_template_in_the_settings_of_the_tokenizer_does_not_stay_beside_the_one_with_arguments(
    hybrid: Path,
):
    file = hybrid / "tokenizer_config.json"
    template = hybrid / "chat_template.jinja"
    settings = json.loads(file.read_text()) | {"chat_template": template.read_text()}
    template.unlink()
    file.write_text(json.dumps(settings))

    with with_chat(hybrid, ChatSettings(arguments={"enable_thinking": False})) as folder:
        check_model_folder(folder)

        assert closes_thought(load_tokenizer(folder))
    assert settings == json.loads(file.read_text())


@pytest.mark.parametrize("value", ['a "b"\n{{ x }}', 3, 0.5])
def test_a_value_is_written_as_it_is(hybrid: Path, value: object):
    with with_chat(hybrid, ChatSettings.model_validate({"arguments": {"style": value}})) as folder:
        text = AutoTokenizer.from_pretrained(folder).apply_chat_template(
            TURNS, add_generation_prompt=True, tokenize=False
        )

    assert text.endswith(f"assistant\n{value}")


def test_an_argument_that_the_template_does_not_read_is_refused_with_those_it_reads(hybrid: Path):
    chat = ChatSettings(arguments={"enable_thoughts": False})
    expected = r"'enable_thoughts', which .* does not read. It reads .*enable_thinking, messages"
    with pytest.raises(SettingsError, match=expected), with_chat(hybrid, chat):
        pass


@pytest.mark.parametrize("name", ["messages", "tools", "eos_token", "a b", "x %}"])
def test_what_whoever_renders_gives_is_no_argument(name: str):
    with pytest.raises(ValidationError, match="no argument of one's own"):
        ChatSettings(arguments={name: True})


def test_a_candidate_gets_the_arguments_that_its_template_reads_and_the_others_are_said(
    hybrid: Path, tmp_path: Path, migrated: Path, caplog: pytest.LogCaptureFixture
):
    place = tmp_path / "store"
    identity = store_at(str(place)).open()
    shutil.copy(migrated, place / "mlflow.db")
    store = StoreRef(uri=str(place), id=identity, tracking_uri=f"sqlite:///{place / 'mlflow.db'}")

    def asked(models: str) -> list[CandidateRef]:
        return ingest_candidates(
            models=models,
            store=store,
            execution=Execution(id="e", started=0.0),
            chat=ChatSettings(arguments={"enable_thinking": False}),
        )

    own, plain, served = asked(f"{hybrid},plain={SHIPPED},http://127.0.0.1:1/v1#m")

    assert own.model is not None
    assert plain.model is not None
    assert closes_thought(load_tokenizer(Path(own.model.uri)))
    assert not closes_thought(load_tokenizer(Path(plain.model.uri)))
    recorded = json.loads(load_statement(store.uri, own.model.statement).settings)
    assert {"enable_thinking": False} == recorded["chat"]["arguments"]
    assert "m" == served.served_as
    warnings = [record.getMessage() for record in caplog.records if "chat.arg" in record.msg]
    assert 2 == len(warnings)
    assert f"enable_thinking has no effect on {SHIPPED}: its chat template" in warnings[1]
    assert "enable_thinking has no effect on http://127.0.0.1:1/v1: its server" in warnings[0]
