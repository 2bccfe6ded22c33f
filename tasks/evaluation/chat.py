"""A model that answers a person in the terminal, or programs, with the embedded engine.

A line that begins with a colon is a command: `:samples` lists prompts of the held-out set, `:2`
asks one of them, `:thinking off` and `on` switch the mode of a hybrid model.

`--serve PORT` answers POST /v1/chat/completions as OpenAI's interface does, for this machine only.
`tools` may be called, in the form of the chat template (`functions`). What a request asks for and
is not here (streams, several answers, a call that has to be made) is refused by name.
Every answer names the sha256 of the model's folder (`system_fingerprint`), and one to a challenge
in `user` proves it (`tasks/provenance/lineage/signatures/served.py`).
Larger models and many users are vLLM's business: the model card has its command.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, field_validator

from data_schemas.frozen_model import FrozenModel
from data_schemas.machine_settings import MachineSettings
from data_schemas.rollouts import Rollout, StopReason
from data_schemas.rows import Message, Problem, Role
from data_schemas.settings import ChatSettings
from data_schemas.texts import on_one_line
from tasks.engines.chat import chat_text, chat_tokens, load_tokenizer, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.engines.select import open_rollout
from tasks.errors import DataError, EngineError, SettingsError
from tasks.evaluation.functions import MOST_FUNCTIONS, ChatTurn, Tool, calls_in, offer_of
from tasks.gym.degenerate import spread
from tasks.gym.judging.chat_client import PROOF
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN
from tasks.gym.serving.endpoint import (
    RequestLimits,
    RequestRefusal,
    Route,
    Routes,
    listen,
    request_of,
)
from tasks.models import chat_trial
from tasks.models.architectures import refuse_foreign_code
from tasks.models.model_folder import check_model_folder, local_folder, read_config, with_chat
from tasks.provenance.lineage.base_model import Origin, find_base
from tasks.provenance.lineage.held_out import held_out_of
from tasks.provenance.lineage.origins import source_digest
from tasks.provenance.lineage.signatures.dsse import Signer
from tasks.provenance.lineage.signatures.keys import find_signer
from tasks.provenance.lineage.signatures.served import CHALLENGE, vouch
from tasks.store.location import existing_store

HOST = "127.0.0.1"
BODY_BYTES = 8 * 2**20
"""Largest size of a request: more text than any model here has positions for."""
MAX_TOKENS = 2**20
"""Largest number of tokens of an answer."""
MOST_SAMPLES = 9
"""Held-out prompts to choose from."""
MOST_CHARACTERS = 68
"""Characters of a prompt in the list, which then fits a line of 80."""
THINKING = "enable_thinking"
"""Argument by which chat templates of hybrid models switch the thought, as Qwen3's does."""
HELP = """\
  A blank line ends a message, Ctrl-D the conversation.
  :samples          prompts of the held-out set
  :2                ask the second of them
  :thinking on|off  let a hybrid model think or not"""
StopString = Annotated[str, Field(min_length=1, max_length=256)]


def _off(value: bool) -> bool:
    if value:
        raise ValueError("an answer is sent as a whole: leave it out, or false")
    return value


Off = Annotated[bool, AfterValidator(_off), Field(strict=True, json_schema_extra={"const": False})]


class ChatRequest(FrozenModel):
    """Body of POST /v1/chat/completions; absent values are those of the command line."""

    messages: tuple[ChatTurn, ...] = Field(min_length=1)
    tools: tuple[Tool, ...] = Field(default=(), max_length=MOST_FUNCTIONS)
    tool_choice: Literal["auto", "none"] = "auto"
    """none: the functions stand in the prompt, and no call is read, as in vLLM."""
    parallel_tool_calls: bool = Field(default=True, strict=True)
    model: str = ""
    """Any name: one model is served."""
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    min_p: float = Field(default=0.0, ge=0.0, lt=1.0)
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    stop: StopString | Annotated[tuple[StopString, ...], Field(max_length=16)] = ()
    n: int = Field(default=1, ge=1, le=1)
    stream: Off = False
    user: str = ""

    @field_validator(
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "min_p",
        "seed",
        "n",
        mode="before",
    )
    @classmethod
    def _is_number(cls, value: object) -> object:
        # As the document says: 5.0 is an integer, "5" is no number, and true is not 1.
        if isinstance(value, str | bool):
            raise ValueError("a number is needed")
        return value


class DialogueModel:
    """A model that answers dialogues; its positions limit how long they are."""

    def __init__(self, folder: Path, engine: RolloutEngine) -> None:
        self.tokenizer = load_tokenizer(folder)
        self._folder = folder
        self._engine = engine
        self._turn = threading.Lock()
        positions = read_config(folder).get("max_position_embeddings")
        self._positions = positions if isinstance(positions, int) else None
        self._longest = max(map(len, self.tokenizer.get_vocab()))
        self.call_form = chat_trial.call_form(folder)

    def switch_thinking(self, *, on: bool) -> None:
        """Render all further prompts in one mode of a hybrid model.

        Raises:
            SettingsError: its chat template knows no modes.
        """
        with with_chat(self._folder, ChatSettings(arguments={THINKING: on})) as folder:
            self.tokenizer = load_tokenizer(folder)

    def prompt_of(
        self, turns: Sequence[ChatTurn], sampling: Sampling, tools: Sequence[Tool] = ()
    ) -> NDArray[np.int32] | None:
        """Tokenise a dialogue; None if it and its answer do not fit the positions.

        Tokenising takes time with the length of a text. One that has more characters than the
        positions can hold, if every token were the longest one, is not tokenised.
        """
        room = None if self._positions is None else self._positions - sampling.max_new_tokens
        if room is not None and sum(len(one.content) for one in turns) > room * self._longest:
            return None
        offer = offer_of(tools, self.call_form)
        text = chat_text(self.tokenizer, [one.for_template() for one in turns], offer)
        if room is not None and len(text) > room * self._longest:
            return None
        prompt = chat_tokens(self.tokenizer, text)
        return None if room is not None and len(prompt) > room else prompt

    def answer(
        self, turns: Sequence[ChatTurn], sampling: Sampling, tools: Sequence[Tool] = ()
    ) -> Rollout:
        """Continue a dialogue; one at a time.

        Raises:
            SettingsError: the dialogue is longer than the positions of the model.
        """
        prompt = self.prompt_of(turns, sampling, tools)
        if prompt is None:
            room = max(0, (self._positions or 0) - sampling.max_new_tokens)
            raise SettingsError(
                f"the prompt has more than the {room} tokens that the model has positions for, "
                "before its answer; write less, or set --max_new_tokens or max_tokens lower"
            )
        with self._turn:
            (rollout,) = self._engine.generate([Request(f"turn/{len(turns)}", prompt, 1)], sampling)
        return rollout


class Conversation:
    """The turns so far. The oldest are forgotten when the positions of the model are used up."""

    def __init__(self, model: DialogueModel, sampling: Sampling) -> None:
        self._model = model
        self._sampling = sampling
        self._turns: list[ChatTurn] = []

    def begin(self, turns: Sequence[Message]) -> None:
        """Forget the turns so far, and begin with others."""
        self._turns = [ChatTurn(role=one.role, content=one.content) for one in turns]

    def answer(self, text: str) -> str:
        """Answer a user's turn; what the model thinks is shown, and is no part of later prompts.

        Raises:
            SettingsError: the turn alone is longer than the positions of the model.
        """
        self._turns.append(ChatTurn(role=Role.USER, content=text))
        while len(self._turns) > 1 and self._model.prompt_of(self._turns, self._sampling) is None:
            del self._turns[:2]
        try:
            rollout = self._model.answer(self._turns, self._sampling)
        except SettingsError:
            self._turns.clear()
            raise
        response = response_text(self._model.tokenizer, rollout.response_tokens.tolist()).strip()
        content = (split_thought(response)[1] or "").strip()
        self._turns.append(ChatTurn(role=Role.ASSISTANT, content=content))
        return response


def serve(
    model: DialogueModel,
    name: str,
    sampling: Sampling,
    port: int,
    weights: str = "",
    signer: Signer | None = None,
) -> ThreadingHTTPServer:
    """Bind the address of an OpenAI-compatible endpoint; the caller serves and closes it.

    Args:
        model: answers.
        name: of the model, in the list of models and in answers.
        sampling: for requests that say nothing else.
        port: 0 = any that is free.
        weights: sha256 of the model's folder, which every answer names; '' = none.
        signer: vouches for the weights where a request asks for it; None = nobody does.

    Raises:
        SettingsError: the address cannot be bound.
    """
    listed = {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "eachprompt"}]}

    def complete(body: bytes) -> bytes:
        request = request_of(body, ChatRequest)
        try:
            rollout = model.answer(request.messages, _sampling_of(request, sampling), request.tools)
        except (SettingsError, DataError) as error:
            raise RequestRefusal(HTTPStatus.BAD_REQUEST, "cannot_answer", str(error)) from error
        except EngineError as error:
            raise RequestRefusal(
                HTTPStatus.SERVICE_UNAVAILABLE, "engine_error", str(error)
            ) from error
        reply = _completion(model, name, rollout, request)
        if weights:
            reply["system_fingerprint"] = weights
            if signer is not None and request.user.startswith(CHALLENGE):
                reply[PROOF] = vouch(weights, request.user, signer).model_dump_json()
        return json.dumps(reply).encode()

    routes: Routes = {
        ("POST", "/v1/chat/completions"): Route(complete, ChatRequest),
        ("GET", "/v1/models"): Route(lambda _: json.dumps(listed).encode()),
    }
    return listen(routes, HOST, port, RequestLimits(body_bytes=BODY_BYTES))


def _sampling_of(request: ChatRequest, default: Sampling) -> Sampling:
    limit = request.max_completion_tokens or request.max_tokens
    return Sampling(
        max_new_tokens=limit or default.max_new_tokens,
        temperature=default.temperature if request.temperature is None else request.temperature,
        seed=default.seed if request.seed is None else request.seed,
        top_p=request.top_p,
        min_p=request.min_p,
        stop=(request.stop,) if isinstance(request.stop, str) else request.stop,
        record_routes=False,
    )


def _completion(
    model: DialogueModel, name: str, rollout: Rollout, request: ChatRequest
) -> dict[str, object]:
    """Return the body of an answer, as vLLM 0.30 does with its reasoning parser deepseek_r1."""
    message, calls = _message(model, rollout, request)
    num_prompt, num_response = len(rollout.prompt_tokens), len(rollout.response_tokens)
    is_cut = rollout.stop_reason is StopReason.LENGTH
    reason = "tool_calls" if calls else "length" if is_cut else "stop"
    return {
        "id": f"chatcmpl-{time.time_ns():x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": name,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": num_prompt,
            "completion_tokens": num_response,
            "total_tokens": num_prompt + num_response,
        },
    }


def _message(
    model: DialogueModel, rollout: Rollout, request: ChatRequest
) -> tuple[dict[str, Any], bool]:
    """Return the assistant's turn, and whether it calls functions."""
    reasoning, content = split_thought(
        response_text(model.tokenizer, rollout.response_tokens.tolist())
    )
    calls: list[dict[str, Any]] = []
    if content is not None and request.tools and request.tool_choice == "auto":
        several = request.parallel_tool_calls
        content, calls = calls_in(content, request.tools, model.call_form, several=several)
    message = {"role": "assistant", "reasoning": reasoning, "content": content}
    return message | ({"tool_calls": calls} if calls else {}), bool(calls)


def split_thought(response: str) -> tuple[str | None, str | None]:
    """Return what is thought and what is answered, None for nothing.

    The answer follows the first `</think>`; a thought that never ends has none. A response without
    a tag is an answer, as it is to the verifiers; vLLM's deepseek_r1 takes it for a thought.
    """
    _, opened, rest = response.partition(THINK_OPEN)
    thought, ended, answer = (rest if opened else response).partition(THINK_CLOSE)
    if not ended and not opened:
        return None, response
    return thought, answer or None


def visible_text(response: str) -> str:
    """Return what a person reads of a response: without the tags of a thought that says nothing."""
    thought, answer = split_thought(response)
    return (answer or "").strip() if thought is not None and not thought.strip() else response


def talk(
    address: str,
    store: str,
    sampling: Sampling,
    port: int | None,
    prompt: str | None = None,
    *,
    thinking: bool | None = None,
) -> None:
    """Open a model, and answer a person until the input ends, one prompt, or programs at a port.

    Args:
        address: of the model.
        store: in which a registered one is.
        sampling: of every answer.
        port: None = a person in the terminal.
        prompt: answered alone.
        thinking: mode of a hybrid model; None = as its chat template has it.

    Raises:
        SettingsError: there is no such model, or it has no modes.
    """
    origin = _origin(address, store)
    # Before the engine reads them, so that no later change of the folder is vouched for.
    weights = (
        "" if port is None else origin.ref.digest if origin.ref else source_digest(origin.folder)
    )
    with closing(open_rollout(MachineSettings(), origin.folder)) as engine:
        model = DialogueModel(origin.folder, engine)
        if thinking is not None:
            model.switch_thinking(on=thinking)
        if port is not None:
            name, signer = address or origin.folder.name, find_signer()
            with (
                serve(model, name, sampling, port, weights, signer) as server,
                suppress(KeyboardInterrupt),
            ):
                base = f"http://{HOST}:{server.server_address[1]}/v1"
                click.echo(f"serving {weights} on {base}; Ctrl-C ends it", err=True)
                server.serve_forever()
            return
        conversation = Conversation(model, sampling)
        if prompt is not None:
            _say(conversation.answer(prompt))
            return
        samples = cache(lambda: _samples(origin, store))
        for message in _messages():
            answer(message, conversation, model, samples)


def _samples(origin: Origin, store: str) -> list[Problem]:
    """Return some problems, evenly spread over the held-out set of a registered model.

    Raises:
        SettingsError: the model is no registered one, or was never evaluated.
    """
    if origin.ref is None:
        raise SettingsError(
            "a folder has no held-out set; name the model models:/NAME@released, with its store"
        )
    place = existing_store(store, os.environ.get("MLFLOW_TRACKING_URI", ""))
    problems = held_out_of(origin.ref.statement, place)
    if not problems:
        raise SettingsError("no evaluation of this model is in the store")
    return spread(problems, MOST_SAMPLES)


def answer(
    message: str,
    conversation: Conversation,
    model: DialogueModel,
    samples: Callable[[], Sequence[Problem]],
) -> None:
    """Print the answer to a message, or carry out a command; a fault of it ends no talk.

    Args:
        message: what was typed.
        conversation: goes on, or begins anew with the prompt that a command chooses.
        model: of the conversation; a command may switch its mode.
        samples: prompts to choose from.
    """
    command = _COMMAND.fullmatch(message)
    if command is None:
        _say(conversation.answer(message))
        return
    try:
        if command["mode"]:
            model.switch_thinking(on=command["mode"] == "on")
        elif command["number"]:
            _ask(int(command["number"]), conversation, samples())
        else:
            for number, problem in enumerate(samples(), start=1):
                text = " ".join(problem.messages[-1].content.split())
                click.echo(f"  :{number}  {on_one_line(text[:MOST_CHARACTERS])}")
    except SettingsError as error:
        click.echo(str(error), err=True)


def _ask(number: int, conversation: Conversation, problems: Sequence[Problem]) -> None:
    if not 1 <= number <= len(problems):
        raise SettingsError(f":{number} is none of the {len(problems)} prompts of :samples")
    *turns, last = problems[number - 1].messages
    _say(last.content)
    click.echo()
    conversation.begin(turns)
    _say(conversation.answer(last.content))


def _say(text: str) -> None:
    """Print what a person reads; a model may say what moves the cursor or clears the screen."""
    click.echo("\n".join(map(on_one_line, visible_text(text).split("\n"))))


def _origin(model: str, store: str) -> Origin:
    """Return the local folder of a model that was checked, and how the lineage names it.

    Raises:
        SettingsError: there is none.
    """
    folder = local_folder(model)
    if folder is None:
        place = existing_store(store, os.environ.get("MLFLOW_TRACKING_URI", ""))
        origin = find_base(model, place)
        if origin.ref is not None:
            return origin
        folder = origin.folder
    refuse_foreign_code(folder)
    check_model_folder(folder)
    return Origin(folder)


_COMMAND = re.compile(r":(?:samples|(?P<number>\d{1,3})|thinking (?P<mode>on|off))")


def _messages() -> Iterator[str]:
    """Yield what is typed; a blank line ends a message, the end of the input the conversation.

    A command is a message of one line.

    A mark asks on a terminal only.
    """
    is_typed = sys.stdin.isatty()
    if is_typed:
        click.echo(HELP, err=True)
    lines: list[str] = []
    while True:
        if is_typed:
            click.echo("... " if lines else "> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not lines and _COMMAND.fullmatch(line.strip()):
            yield line.strip()
        elif line.strip():
            lines.append(line.rstrip("\n"))
        elif lines:
            yield "\n".join(lines).strip()
            lines = []
        if not line:
            return
