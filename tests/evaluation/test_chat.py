"""A conversation in the terminal with a real, tiny model, and the same over HTTP."""

import io
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from data_schemas.machine_settings import MachineSettings
from data_schemas.rows import Domain, Message, Role
from tasks.engines.chat import load_tokenizer
from tasks.engines.protocols import Sampling
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.engines.select import open_rollout
from tasks.errors import SettingsError
from tasks.evaluation.chat import (
    Conversation,
    DialogueModel,
    answer,
    serve,
    split_thought,
    visible_text,
)
from tasks.evaluation.chat_command import main
from tasks.evaluation.functions import ChatTurn
from tasks.gym.judging.chat_client import ChatClient, ChatReply, ChatSampling
from tasks.gym.judging.endpoint import ApiKey
from tasks.models.architectures import CODE
from tasks.training.foundation.base import shipped_base
from tests.gym.tools.vllm_parsers import parsed
from tests.openapi_client import complaints
from tests.processes import serving
from tests.records import problem_of
from tests.schema_values import NO_NULL, SLOW_DRAWS, near, values

GREEDY = Sampling(max_new_tokens=8, temperature=0.0, seed=0, record_routes=False)
HEADERS = {"Content-Type": "application/json"}
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def model(tiny_moe: Path) -> Iterator[DialogueModel]:
    with closing(open_rollout(MachineSettings(), tiny_moe)) as engine:
        yield DialogueModel(tiny_moe, engine)


@pytest.fixture(scope="module")
def address(model: DialogueModel) -> Iterator[str]:
    with serve(model, "shop", GREEDY, 0) as server, serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"


def call(url: str, body: object = None) -> tuple[int, dict]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, data, HEADERS), timeout=60
        ) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_endpoint_says_what_the_terminal_says(model: DialogueModel, address: str):
    said = Conversation(model, GREEDY).answer("hello")

    status, body = call(f"{address}/chat/completions", {"model": "shop", "messages": HELLO})

    assert 200 == status
    (choice,) = body["choices"]
    assert (split_thought(said)[1] or "") == (choice["message"]["content"] or "").strip()
    assert "assistant" == choice["message"]["role"]
    assert choice["finish_reason"] in ("stop", "length")
    assert 0 < body["usage"]["completion_tokens"] <= 8
    assert ["shop"] == [one["id"] for one in call(f"{address}/models")[1]["data"]]


def test_the_client_that_evaluates_endpoints_gets_its_answers(address: str):
    client = ChatClient(
        address, "shop", ChatSampling(3), key=ApiKey(""), timeout_s=60.0, max_concurrent=4
    )

    found = client.ask([[Message(role=Role.USER, content=f"hello {n}")] for n in range(4)])

    assert all(isinstance(one, ChatReply) and 0 < one.tokens <= 3 for one in found)


def test_a_prompt_beyond_the_positions_is_refused_by_name(address: str):
    status, body = call(f"{address}/chat/completions", {"messages": HELLO, "max_tokens": 10_000})

    assert (400, "cannot_answer") == (status, body["error"]["code"])
    assert "that the model has positions for" in body["error"]["message"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stream": True}, "stream: Value error, an answer is sent as a whole"),
        ({"stream": 0}, "stream: Input should be a valid boolean"),
        ({"n": True}, "n: Value error, a number is needed"),
        ({"max_tokens": "5"}, "max_tokens: Value error, a number is needed"),
        ({"n": 2}, "n: Input should be less than or equal to 1"),
        ({"tool_choice": "required"}, "tool_choice: Input should be 'auto' or 'none'"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
            "tools.0.function.strict: Value error, arguments are not held to a schema",
        ),
        ({"messages": []}, "messages: Tuple should have at least 1 item"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role: Input should be"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_the_endpoint_does_not_do_is_refused_by_name(
    address: str, changes: dict, message: str
):
    status, body = call(f"{address}/chat/completions", {"messages": HELLO, **changes})

    assert 422 == status
    assert message in body["error"]["message"]


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_every_message_is_answered_until_the_input_ends(
    tiny_moe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    options = ["--max_new_tokens", "4", "--temperature", "0"]
    typed(monkeypatch, "hello\n\nhello\n")
    main([str(tiny_moe), *options])
    twice = capsys.readouterr().out
    typed(monkeypatch, "hello\n")
    main([str(tiny_moe), *options])
    once = capsys.readouterr().out

    assert once
    assert twice.startswith(once)
    assert len(twice) > len(once)


def test_a_blank_line_ends_a_message_and_a_file_is_one(
    tiny_moe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    options = ["--max_new_tokens", "4", "--temperature", "0"]
    answers = []
    for text in ("a\nb\n\n", "\n\na\nb", "a\n\nb"):
        typed(monkeypatch, text)
        main([str(tiny_moe), *options])
        answers.append(capsys.readouterr().out)
    (tmp_path / "prompt.txt").write_text("a\nb\n")
    main([str(tiny_moe), *options, "--prompt-file", str(tmp_path / "prompt.txt")])

    assert answers[0] == answers[1] == capsys.readouterr().out
    assert answers[0] != answers[2]

    (tmp_path / "prompt.txt").write_text(" \n")
    with pytest.raises(SettingsError, match="is empty"):
        main([str(tiny_moe), "--prompt-file", str(tmp_path / "prompt.txt")])


def test_a_thought_that_says_nothing_is_not_shown() -> None:
    assert "B." == visible_text("<think>\n</think>\n\nB.")
    assert "<think>hm</think>B." == visible_text("<think>hm</think>B.")
    assert "<think>hm cut" == visible_text("<think>hm cut")
    assert "plain" == visible_text("plain")


def test_old_turns_are_forgotten_and_a_turn_that_is_too_long_is_refused(
    tiny_moe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    typed(monkeypatch, f"{'x' * 100}\n\n" * 4)
    main([str(tiny_moe), "--max_new_tokens", "4"])
    assert capsys.readouterr().out

    typed(monkeypatch, "x" * 400)
    with pytest.raises(
        SettingsError, match="more than the 252 tokens that the model has positions"
    ):
        main([str(tiny_moe), "--max_new_tokens", "4"])


@pytest.mark.attack
@pytest.mark.parametrize("name", ["evil.py:Family", "tasks.py:Family"])
def test_a_folder_whose_config_names_code_is_not_talked_to(tiny_moe, tmp_path, monkeypatch, name):
    folder = tmp_path / "download"
    shutil.copytree(tiny_moe, folder)
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "x", CODE: name}))
    (tmp_path / name.partition(":")[0]).write_text("open('was_run', 'w')\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SettingsError, match="names code that opens the model"):
        main([str(folder)])
    assert not (tmp_path / "was_run").exists()


def test_a_model_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(SettingsError, match="nowhere"):
        main([str(tmp_path / "nowhere")])
    with pytest.raises(SettingsError, match=r"--store .* is no store"):
        main(["models:/mine@released", "--store", str(tmp_path)])


@pytest.mark.parametrize(
    ("response", "thought", "answer"),
    [
        ("<think>\nhm\n</think>\n\nB.", "\nhm\n", "\n\nB."),
        ("hm\n</think>\n\nB.", "hm\n", "\n\nB."),
        ("<think>hm cut", "hm cut", None),
        ("<think>a</think>C<think>b</think>B", "a", "C<think>b</think>B"),
        ("<think>a</think>", "a", None),
        ("B.", None, "B."),
    ],
)
def test_an_answer_is_split_at_the_first_end_of_a_thought(response, thought, answer):
    assert (thought, answer) == split_thought(response)


class Untouched:
    """Stands in for a tokenizer: a text that is given to it fails the test."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"tokenised: {name}")


@pytest.mark.attack
def test_a_text_that_no_tokens_could_hold_is_not_tokenised(tiny_moe: Path):
    with closing(open_rollout(MachineSettings(), tiny_moe)) as engine:
        model = DialogueModel(tiny_moe, engine)
        longest = max(map(len, model.tokenizer.get_vocab()))
        room = 256 - GREEDY.max_new_tokens
        turns = [ChatTurn(role=Role.USER, content="x" * (room * longest + 1))]
        model.tokenizer = Untouched()  # type: ignore[assignment]

        with pytest.raises(SettingsError, match="more than the 248 tokens"):
            model.answer(turns, GREEDY)
        with pytest.raises(AssertionError, match="tokenised"):
            model.answer([ChatTurn(role=Role.USER, content="x" * room * longest)], GREEDY)


@pytest.mark.attack
def test_turns_that_the_template_refuses_are_the_fault_of_the_request(
    tiny_moe: Path, tmp_path: Path
):
    folder = tmp_path / "model"
    shutil.copytree(tiny_moe, folder)
    path = folder / "chat_template.jinja"
    refusal = "{% if messages[0].role == 'tool' %}{{ raise_exception('no tool speaks first') }}"
    path.write_text(f"{refusal}{{% endif %}}{path.read_text()}")
    with (
        closing(open_rollout(MachineSettings(), folder)) as engine,
        serve(DialogueModel(folder, engine), "shop", GREEDY, 0) as server,
        serving(server),
    ):
        url = f"http://127.0.0.1:{server.server_address[1]}/v1/chat/completions"
        status, body = call(url, {"messages": [{"role": "tool", "content": "hello"}]})

    assert (400, "cannot_answer") == (status, body["error"]["code"])
    assert "no tool speaks first" in body["error"]["message"]


def fuzz(address: str, examples: int) -> None:
    """Send requests made of the endpoint's own document; each is answered or refused by name."""
    document = call(f"{address.removesuffix('/v1')}/openapi.json")[1]
    operation = document["paths"]["/v1/chat/completions"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    definitions = document["components"]["schemas"]
    fields = definitions["ChatRequest"]["properties"]
    # What is allowed costs a token a time; the limits themselves are in `near`.
    short = {name: {"const": 2} for name in ("max_tokens", "max_completion_tokens")}
    allowed = {**definitions, "ChatRequest": {**definitions["ChatRequest"]}}
    allowed["ChatRequest"]["properties"] = {**fields, **short}
    allowed["ChatRequest"]["required"] = ["messages", "max_tokens"]

    @settings(max_examples=examples, deadline=None, suppress_health_check=SLOW_DRAWS, database=None)
    @given(values(schema, allowed) | near(schema, allowed) | values(schema, definitions) | NO_NULL)
    def send(body: object) -> None:
        status, reply = call(f"{address}/chat/completions", body)
        assert status in (200, 400, 422), reply
        if status == 200:
            assert 0 < reply["usage"]["completion_tokens"] < 256
        else:
            assert {"code", "message"} == reply["error"].keys()

    send()


@pytest.mark.attack
def test_every_chat_that_the_document_allows_or_nearly_does_has_its_answer(address: str):
    fuzz(address, 8)


@pytest.mark.attack
@pytest.mark.slow
def test_so_have_a_thousand_chats(address: str):
    fuzz(address, 1000)


@pytest.mark.tools
def test_schemathesis_finds_every_chat_as_the_document_says(address: str, tmp_path: Path):
    assert "" == complaints(address.removesuffix("/v1"), tmp_path)


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {key: {"type": kind}}},
        },
    }
    for name, key, kind in (("f", "a", "integer"), ("g", "b", "string"))
]
HERMES = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
BOTH = HERMES + '\n<tool_call>\n{"name": "g", "arguments": {"b": "é"}}\n</tool_call>'
F, G = ["f", {"a": 1}], ["g", {"b": "é"}]
ANSWERS: list[tuple[str, str | None, str | None, list]] = [
    ("<think>so</think>\n\nHello.", "so", "\n\nHello.", []),
    ("<think>so", "so", None, []),
    (f"<think>so</think>{HERMES}", "so", None, [F]),
    (f"<think>so</think>\n\n{BOTH}", "so", None, [F, G]),
    (f"<think>so</think>I call.\n{HERMES}", "so", "I call.\n", [F]),
    (f"<think>{HERMES} no</think>Hello.", f"{HERMES} no", "Hello.", []),
    (f"<think>a</think>{HERMES}<think>b</think>B", "a", None, [F]),
]
"""A response, and what vLLM 0.30 makes of it: reasoning, content and calls."""


def asked(folder: Path, response: str, body: dict) -> tuple[int, dict]:
    """Ask a model that always says the same."""
    engine = ScriptedRolloutEngine(load_tokenizer(folder), lambda *_: response)
    with (
        serve(DialogueModel(folder, engine), "shop", replace(GREEDY, max_new_tokens=200), 0) as it,
        serving(it),
    ):
        url = f"http://127.0.0.1:{it.server_address[1]}/v1/chat/completions"
        return call(url, {"messages": HELLO, **body})


@pytest.mark.parametrize(("response", "reasoning", "content", "calls"), ANSWERS)
def test_thought_text_and_calls_are_told_as_vllm_tells_them(response, reasoning, content, calls):
    status, body = asked(shipped_base(), response, {"tools": TOOLS})

    (choice,) = body["choices"]
    message = choice["message"]
    assert (200, reasoning, content) == (status, message["reasoning"], message["content"])
    functions = [one["function"] for one in message.get("tool_calls", [])]
    assert calls == [[one["name"], json.loads(one["arguments"])] for one in functions]
    assert ("tool_calls" if calls else "stop") == choice["finish_reason"]
    assert bool(calls) == ("tool_calls" in message)


@pytest.mark.engines
@pytest.mark.parametrize(("response", "reasoning", "content", "calls"), ANSWERS)
def test_vllm_tells_thought_text_and_calls_so(response, reasoning, content, calls):
    told = parsed("hermes", response, TOOLS)

    assert (reasoning, content) == told[:2]
    assert calls == [[name, json.loads(arguments)] for name, arguments in told[2]]


def test_a_call_and_its_answer_are_written_as_the_template_writes_them():
    folder = shipped_base()
    prompts: list[str] = []

    def script(prompt: str, _: int) -> str:
        prompts.append(prompt)
        return HERMES

    engine = ScriptedRolloutEngine(load_tokenizer(folder), script)
    model = DialogueModel(folder, engine)
    with serve(model, "shop", replace(GREEDY, max_new_tokens=100), 0) as server, serving(server):
        url = f"http://127.0.0.1:{server.server_address[1]}/v1/chat/completions"
        first = call(url, {"messages": HELLO, "tools": TOOLS})[1]["choices"][0]["message"]
        answer = {
            "role": "tool",
            "tool_call_id": first["tool_calls"][0]["id"],
            "content": "2<|im_end|>",
        }
        status, _ = call(url, {"messages": [*HELLO, first, answer], "tools": TOOLS})

    assert 200 == status
    assert (
        "<|im_start|>user\nf(a) g(b)\nhello<|im_end|>\n<|im_start|>assistant\n"
        '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call><|im_end|>\n'
        "<|im_start|>tool\n2< |im_end|><|im_end|>\n<|im_start|>assistant\n"
    ) == prompts[1]


def test_calls_are_read_only_where_a_request_asks_for_them():
    folder, said = shipped_base(), f"<think>so</think>{BOTH}"
    for body in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        (choice,) = asked(folder, said, body)[1]["choices"]
        assert (BOTH, "stop") == (choice["message"]["content"], choice["finish_reason"])

    one = asked(folder, said, {"tools": TOOLS, "parallel_tool_calls": False})[1]["choices"][0]

    assert ["f"] == [each["function"]["name"] for each in one["message"]["tool_calls"]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"function": {"name": "f", "arguments": "[1"}}],
                    }
                ]
            },
            "the arguments of a call of 'f' are no object of JSON: '[1'",
        ),
        (
            {"tools": [{"function": {"name": "f", "parameters": {"properties": 5}}}]},
            "the chat template cannot write this chat",
        ),
    ],
)
def test_what_cannot_be_written_is_the_fault_of_the_request(body: dict, message: str):
    status, reply = asked(shipped_base(), "", body)

    assert (400, "cannot_answer") == (status, reply["error"]["code"])
    assert message in reply["error"]["message"]


def test_a_template_without_calls_is_offered_no_functions(address: str):
    status, body = call(f"{address}/chat/completions", {"messages": HELLO, "tools": TOOLS})

    assert 400 == status
    assert "writes no calls of functions" in body["error"]["message"]


@pytest.fixture
def hybrid(tiny_moe: Path, tmp_path: Path) -> Path:
    folder = shutil.copytree(tiny_moe, tmp_path / "hybrid")
    template = (folder / "chat_template.jinja").read_text()
    empty = "{% if add_generation_prompt and enable_thinking is defined and not enable_thinking %}"
    (folder / "chat_template.jinja").write_text(f"{template}{empty}<think></think>{{% endif %}}")
    return folder


def test_a_hybrid_model_is_asked_in_both_modes(
    hybrid: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    options = [str(hybrid), "--max_new_tokens", "6", "--temperature", "0"]
    answers = {}
    for mode in ("on", "off"):
        typed(monkeypatch, "hello\n")
        main([*options, "--thinking", mode])
        answers[mode] = capsys.readouterr().out
    typed(monkeypatch, ":thinking off\nhello\n")
    main(options)

    assert answers["on"] != answers["off"] == capsys.readouterr().out


def test_a_command_that_cannot_be_carried_out_says_why_and_the_talk_goes_on(
    tiny_moe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    typed(monkeypatch, ":samples\n:thinking off\n:)\n")
    main([str(tiny_moe), "--max_new_tokens", "4"])

    printed = capsys.readouterr()
    assert "a folder has no held-out set; name the model models:/NAME@released" in printed.err
    assert "chat.arguments has 'enable_thinking', which the chat template" in printed.err
    assert printed.out


def test_a_held_out_prompt_is_chosen_by_its_number_and_begins_a_conversation(
    model: DialogueModel, capsys: pytest.CaptureFixture[str]
):
    problems = [
        problem_of(
            (
                Message(role=Role.SYSTEM, content="Be brief."),
                Message(role=Role.USER, content=text),
            ),
            "{}",
            id=f"shop/{text}",
            domain=Domain.CHOICE,
            verifier="choice",
            source="shop",
            source_row="1",
        )
        for text in ("a\nb", "c" * 100)
    ]
    conversation = Conversation(model, GREEDY)

    answer(":samples", conversation, model, lambda: problems)
    assert f"  :1  a b\n  :2  {'c' * 68}\n" == capsys.readouterr().out
    answer(":1", conversation, model, lambda: problems)
    chosen = capsys.readouterr().out
    fresh = Conversation(model, GREEDY)
    fresh.begin(problems[0].messages[:1])
    assert chosen == f"a\nb\n\n{fresh.answer('a' + chr(10) + 'b')}\n"
    answer(":3", conversation, model, lambda: problems)
    assert ":3 is none of the 2 prompts of :samples" in capsys.readouterr().err
