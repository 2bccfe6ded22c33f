"""A model that answers a person in the terminal, or programs, with the embedded engine.

`--serve PORT` answers POST /v1/chat/completions as OpenAI's interface does, for this machine only.
What such a request asks for and is not here (streams, several answers, tools) is refused by name.
Larger models and many users are vLLM's business: the model card has its command.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Literal

import click
import numpy as np
from jinja2 import TemplateError
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.machine_settings import MachineSettings
from data_schemas.rollouts import Rollout, StopReason
from data_schemas.rows import Message, Role
from data_schemas.texts import on_one_line
from tasks.engines.chat import load_tokenizer, render_prompt, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.engines.select import open_rollout
from tasks.errors import DataError, EngineError, SettingsError
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN
from tasks.gym.serving.endpoint import (
    Limits,
    Refusal,
    Route,
    Routes,
    bad_request,
    listen,
    request_of,
)
from tasks.models.architectures import refuse_foreign_code
from tasks.models.model_folder import check_model_folder, local_folder, read_config
from tasks.provenance.lineage.base_model import find_base
from tasks.store.location import existing_store

HOST = "127.0.0.1"
BODY_BYTES = 8 * 2**20
"""Of a request: more text than any model here has positions for."""
MAX_TOKENS = 2**20
"""Of an answer."""
StopString = Annotated[str, Field(min_length=1, max_length=256)]


class ChatRequest(BaseModel):
    """Body of POST /v1/chat/completions; absent values are those of the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    messages: tuple[Message, ...] = Field(min_length=1)
    model: str = ""
    """Any name: one model is served."""
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    min_p: float = Field(default=0.0, ge=0.0, lt=1.0)
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    stop: StopString | Annotated[tuple[StopString, ...], Field(max_length=16)] = ()
    n: Literal[1] = 1
    stream: Literal[False] = False
    user: str = ""


class DialogueModel:
    """A model that answers dialogues; its positions limit how long they are."""

    def __init__(self, folder: Path, engine: RolloutEngine) -> None:
        self.tokenizer = load_tokenizer(folder)
        self._engine = engine
        self._turn = threading.Lock()
        positions = read_config(folder).get("max_position_embeddings")
        self._positions = positions if isinstance(positions, int) else None
        self._longest = max(map(len, self.tokenizer.get_vocab()))

    def prompt_of(self, turns: Sequence[Message], sampling: Sampling) -> NDArray[np.int32] | None:
        """Tokenise a dialogue; None if it and its answer do not fit the positions.

        Tokenising takes time with the length of a text. One that has more characters than the
        positions can hold, if every token were the longest one, is not tokenised.
        """
        room = None if self._positions is None else self._positions - sampling.max_new_tokens
        if room is not None and sum(len(one.content) for one in turns) > room * self._longest:
            return None
        prompt = render_prompt(self.tokenizer, turns)
        return None if room is not None and len(prompt) > room else prompt

    def answer(self, turns: Sequence[Message], sampling: Sampling) -> Rollout:
        """Continue a dialogue; one at a time.

        Raises:
            SettingsError: the dialogue is longer than the positions of the model.
        """
        prompt = self.prompt_of(turns, sampling)
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
        self._turns: list[Message] = []

    def answer(self, text: str) -> str:
        """Answer a user's turn; what the model thinks is shown, and is no part of later prompts.

        Raises:
            SettingsError: the turn alone is longer than the positions of the model.
        """
        self._turns.append(Message(role=Role.USER, content=text))
        while len(self._turns) > 1 and self._model.prompt_of(self._turns, self._sampling) is None:
            del self._turns[:2]
        try:
            rollout = self._model.answer(self._turns, self._sampling)
        except SettingsError:
            self._turns.clear()
            raise
        response = response_text(self._model.tokenizer, rollout.response_tokens.tolist()).strip()
        content = (split_thought(response)[1] or "").strip()
        self._turns.append(Message(role=Role.ASSISTANT, content=content))
        return response


def serve(model: DialogueModel, name: str, sampling: Sampling, port: int) -> ThreadingHTTPServer:
    """Bind the address of an OpenAI-compatible endpoint; the caller serves and closes it.

    Args:
        model: answers.
        name: of the model, in the list of models and in answers.
        sampling: for requests that say nothing else.
        port: 0 = any that is free.

    Raises:
        SettingsError: the address cannot be bound.
    """
    listed = {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "eachprompt"}]}

    def complete(body: bytes) -> bytes:
        request = request_of(body, ChatRequest)
        try:
            rollout = model.answer(request.messages, _sampling_of(request, sampling))
        except (SettingsError, DataError, TemplateError) as error:  # a template may refuse turns
            raise bad_request(str(error)) from error
        except EngineError as error:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "engine_error", str(error)) from error
        return json.dumps(_completion(model, name, rollout)).encode()

    routes: Routes = {
        ("POST", "/v1/chat/completions"): Route(complete, ChatRequest),
        ("GET", "/v1/models"): Route(lambda _: json.dumps(listed).encode()),
    }
    return listen(routes, HOST, port, Limits(body_bytes=BODY_BYTES))


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


def _completion(model: DialogueModel, name: str, rollout: Rollout) -> dict[str, object]:
    """Return the body of an answer, as vLLM 0.30 does with its reasoning parser deepseek_r1."""
    reasoning, content = split_thought(
        response_text(model.tokenizer, rollout.response_tokens.tolist())
    )
    message = {"role": "assistant", "reasoning": reasoning, "content": content}
    num_prompt, num_response = len(rollout.prompt_tokens), len(rollout.response_tokens)
    is_cut = rollout.stop_reason is StopReason.LENGTH
    return {
        "id": f"chatcmpl-{time.time_ns():x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": name,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "length" if is_cut else "stop"}
        ],
        "usage": {
            "prompt_tokens": num_prompt,
            "completion_tokens": num_response,
            "total_tokens": num_prompt + num_response,
        },
    }


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


def shown(response: str) -> str:
    """Return what a person reads of a response: without the tags of a thought that says nothing."""
    thought, answer = split_thought(response)
    return (answer or "").strip() if thought is not None and not thought.strip() else response


def talk(
    address: str, store: str, sampling: Sampling, port: int | None, prompt: str | None = None
) -> None:
    """Open a model, and answer a person until the input ends, one prompt, or programs at a port.

    Args:
        address: of the model.
        store: in which a registered one is.
        sampling: of every answer.
        port: None = a person in the terminal.
        prompt: answered alone.
    """
    folder = _folder(address, store)
    with closing(open_rollout(MachineSettings(), folder)) as engine:
        model = DialogueModel(folder, engine)
        if port is not None:
            with (
                serve(model, address or folder.name, sampling, port) as server,
                suppress(KeyboardInterrupt),
            ):
                base = f"http://{HOST}:{server.server_address[1]}/v1"
                click.echo(f"serving on {base}; Ctrl-C ends it", err=True)
                server.serve_forever()
            return
        conversation = Conversation(model, sampling)
        for message in _messages() if prompt is None else (prompt,):
            # A model may say what moves the cursor or clears the screen.
            lines = shown(conversation.answer(message)).split("\n")
            click.echo("\n".join(map(on_one_line, lines)))


def _folder(model: str, store: str) -> Path:
    """Return the local folder of a model that was checked.

    Raises:
        SettingsError: there is none.
    """
    folder = local_folder(model)
    if folder is None:
        place = existing_store(store, os.environ.get("MLFLOW_TRACKING_URI", ""))
        origin = find_base(model, place)
        if origin.ref is not None:
            return origin.folder
        folder = origin.folder
    refuse_foreign_code(folder)
    check_model_folder(folder)
    return folder


def _messages() -> Iterator[str]:
    """Yield what is typed; a blank line ends a message, the end of the input the conversation.

    A mark asks on a terminal only.
    """
    is_typed = sys.stdin.isatty()
    if is_typed:
        click.echo("A blank line ends a message, Ctrl-D the conversation.", err=True)
    lines: list[str] = []
    while True:
        if is_typed:
            click.echo("... " if lines else "> ", nl=False, err=True)
        line = sys.stdin.readline()
        if line.strip():
            lines.append(line.rstrip("\n"))
        elif lines:
            yield "\n".join(lines).strip()
            lines = []
        if not line:
            return
