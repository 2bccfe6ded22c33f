"""Renders one question with the chat template of a model directory and tokenises it: FOLDER.

A chat template is a program, and a tokenizer has expressions that may never end. `model_folder`
runs this file in a process of its own, under limits of processor time and memory; it imports
nothing of ours, so that it starts in a tenth of a second. It prints one JSON object: the highest
token id, or what is wrong.
"""

import json
import re
import resource
import sys
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext
import jinja2.meta
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox
from tokenizers import Tokenizer

TEMPLATE_FILE = "chat_template.jinja"
CPU_S = 10
MEMORY_BYTES = 8 * 2**30
"""Limit of the address space; the tokenizer of a vocabulary of 250,000 needs a tenth."""
QUESTION = "What is one plus one? " * 50
_ANSWER = "Zwei."
"""An answer that no template has words of."""
LONGEST = 100
"""A prompt may have as many times the characters of its question: tools and a long system text."""

FORMS = {
    "qwen3_xml": re.compile(r"<tool_call>\s*<function=f>\s*<parameter=a>\s*1\s*</parameter>"),
    "hermes": re.compile(r'<tool_call>\s*\{\s*"name":\s*"f",\s*"arguments":\s*\{"a":\s*1\}'),
    "llama3_json": re.compile(r'\{\s*"name":\s*"f",\s*"parameters":\s*\{"a":\s*1\}'),
    "pythonic": re.compile(r"\[f\(a=1\)\]"),
}
"""How templates write the call of f with a = 1, by the name of the server's tool parser."""
_OPENING = re.compile(r"(?:<think>\s*)?(?:</think>\s*)?")
"""What a prompt may say of a response: `<think>` of R1, an empty thought of Qwen3 without thinking,
`</think>` of DeepSeek-V3.1."""


class _Generation(jinja2.ext.Extension):
    """`{% generation %}`, which marks what an assistant said."""

    def __init__(self, environment: jinja2.Environment) -> None:
        super().__init__(environment)
        self.tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        """Return what is inside."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _settings(folder: Path) -> dict[str, Any]:
    file = folder / "tokenizer_config.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def template_of(folder: Path) -> str:
    """Return the chat template, as transformers chooses it; '' if there is none."""
    own = folder / TEMPLATE_FILE
    if own.exists():
        return own.read_text(encoding="utf-8")
    return _template_in(_settings(folder))


def _template_in(settings: dict[str, Any]) -> str:
    """Return the template that tokenizer_config.json has; '' if it has none."""
    results = settings.get("chat_template") or ""
    if isinstance(results, list):
        results = {one["name"]: one["template"] for one in results}
    return results.get("default", "") if isinstance(results, dict) else results


def _environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    return jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )


def arguments_of(template: str) -> set[str]:
    """Name what a template reads and whoever renders a chat may give.

    Raises:
        TemplateError: it is none.
    """
    return jinja2.meta.find_undeclared_variables(_environment().parse(template))


def with_arguments(template: str, arguments: Mapping[str, bool | int | float | str]) -> str:
    """Return a template that has these values where nobody gives others.

    It writes what the template writes if it is called with them, in every program.
    """
    defaults = "".join(
        f"{{% if {name} is not defined %}}{{% set {name} = {json.dumps(value)} %}}{{% endif %}}"
        for name, value in sorted(arguments.items())
    )
    # Behind a block the first line end of a template would be left out; behind a value it is not.
    return f"{defaults}{{{{ '' }}}}{template}" if defaults else template


def render(
    template: str,
    settings: dict[str, Any],
    messages: list[dict[str, Any]] | None = None,
    tools: list[dict[str, Any]] | None = None,
    *,
    with_turn: bool = True,
) -> str:
    """Render a chat as transformers does.

    Args:
        template: of the chat.
        settings: of the tokenizer.
        messages: turns; a question if there are none.
        tools: functions on offer.
        with_turn: begin the assistant's turn behind them.

    Raises:
        TemplateError: it cannot be.
    """

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = _environment()
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    tokens = {
        name: value["content"] if isinstance(value, dict) else value
        for name, value in settings.items()
        if name.endswith("_token") and isinstance(value, str | dict)
    }
    return environment.from_string(template).render(
        messages=messages or [{"role": "user", "content": QUESTION}],
        tools=tools,
        documents=None,
        add_generation_prompt=with_turn,
        **tokens,
    )


_TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "?",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
        },
    },
}
_CALLED = {"name": "f", "arguments": {"a": 1}}


def call_form(folder: Path) -> str:
    """Name the form in which a chat template writes a call of a function.

    Returns:
        'hermes', 'qwen3_xml', 'llama3_json' or 'pythonic', as servers name their parsers; '' if the
        template writes none, or another one.
    """
    template, settings = template_of(folder), _settings(folder)
    question = {"role": "user", "content": "?"}
    # Mistral's template asks for ids of nine characters.
    call = {"type": "function", "id": "call00001", "function": _CALLED}
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    try:
        before = render(template, settings, [question], [_TOOL], with_turn=False)
        whole = render(template, settings, [question, turn], [_TOOL], with_turn=False)
    except Exception:  # noqa: BLE001 - a template without calls may raise anything
        return ""
    text = whole.removeprefix(before)
    return next((name for name, form in FORMS.items() if form.search(text)), "")


def separates_thoughts(folder: Path) -> bool:
    """Return whether a server can tell thoughts from answers: each tag is one token.

    Not where the chat template ends the thought in the prompt: then there is none.
    """
    file = folder / "tokenizer.json"
    if not file.is_file() or "</think>" in opening(folder):
        return False
    tokenizer = Tokenizer.from_file(str(file))
    return all(tokenizer.token_to_id(tag) is not None for tag in ("<think>", "</think>"))


def with_tools(
    folder: Path, system: str, question: str, tools: list[dict[str, Any]]
) -> tuple[str, str] | None:
    """Write into a chat what its template would say of tools.

    Args:
        folder: of the model.
        system: text of the system turn, not empty.
        question: text of the user's first turn.
        tools: functions on offer, as a server's `tools`.

    Returns:
        Texts of the system turn and of the question, of which one has the template's own block of
        tools: rendered without `tools` they are what the template makes of the given ones with
        them. None if the template says nothing of tools, or says it elsewhere.
    """
    template, settings = template_of(folder), _settings(folder)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    try:
        bare, whole = (render(template, settings, messages, one) for one in (None, tools))
    except Exception:  # noqa: BLE001 - as above
        return None
    for place, is_system in (
        (bare.find(system) + len(system), True),
        (bare.rfind(question), False),
    ):
        block = whole[place : place + len(whole) - len(bare)]
        if block and whole == bare[:place] + block + bare[place:]:
            return (system + block, question) if is_system else (system, block + question)
    return None


def opening(folder: Path) -> str:
    """Return what a prompt already says of the response to it: '' for most models, `<think>` and a
    newline where the chat template opens the thought, an empty thought where it closes one.

    A folder without a chat template has none.

    Raises:
        Exception: whatever the template raises.
    """
    template, settings = template_of(folder), _settings(folder)
    if not template:
        return ""
    whole = render(template, settings)
    before = render(template, settings, with_turn=False)
    # A template that ignores add_generation_prompt begins the turn in both.
    turn = whole.removeprefix(before) or whole.rpartition(QUESTION.strip())[2]
    tag = re.search(r"</?think>", turn)
    return turn[tag.start() :] if tag else ""


def end_of_turn(folder: Path) -> int | None:
    """Return the control token that a chat template writes behind an answer; None if there is none.

    A model that was trained with the template ends its answers so, whatever its configs say: TRL
    trains a base with <|im_end|> and leaves <|endoftext|> as the end.
    """
    template, file = template_of(folder), folder / "tokenizer.json"
    if not template or not file.is_file():
        return None
    chat = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": _ANSWER}]
    try:
        whole = render(template, _settings(folder), chat, with_turn=False)
        added = json.loads(file.read_bytes())["added_tokens"]
        ids = {one["content"]: one["id"] for one in added if one["special"]}
    except Exception:  # noqa: BLE001 - whatever a template raises; the folder's check says so
        return None
    _, _, behind = whole.rpartition(_ANSWER)
    names = [name for name in ids if behind.startswith(name)]
    return ids[max(names, key=len)] if names else None


def _other_opening(folder: Path) -> str:
    """Return what a prompt begins a response with, beside the header of the assistant's turn.

    The header is what stands before the text of an assistant in the middle of a chat: so
    `<thinking>`, `<|begin_of_thought|>` or "Answer:" behind it are of the prompt alone. '' where a
    header says more than the prompt does, or the template renders no such chat.
    """
    template, settings = template_of(folder), _settings(folder)
    question = {"role": "user", "content": QUESTION}
    chat = [question, {"role": "assistant", "content": _ANSWER}, question]
    try:
        before = render(template, settings, [question], with_turn=False)
        prompt = render(template, settings, [question])
        header, found, _ = render(template, settings, chat).removeprefix(before).partition(_ANSWER)
    except Exception:  # noqa: BLE001 - whatever a template raises
        return ""
    turn = prompt.removeprefix(before)
    return turn.removeprefix(header).strip() if found and turn.startswith(header) else ""


def _missing_header(folder: Path) -> str:
    """Return what stands before an answer in a chat and not at the end of a prompt; '' if nothing.

    A template that does not read add_generation_prompt leaves the header of the assistant's turn to
    the model. Others need none: in [INST] ... [/INST] the question's own end is the header.
    """
    template, settings = template_of(folder), _settings(folder)
    question = {"role": "user", "content": QUESTION}
    try:
        prompt = render(template, settings, [question]).rstrip()
        chat = [question, {"role": "assistant", "content": _ANSWER}]
        before, found, _ = render(template, settings, chat, with_turn=False).partition(_ANSWER)
    except Exception:  # noqa: BLE001 - whatever a template raises
        return ""
    if not found or not before.startswith(prompt):
        return ""
    return re.sub(r"</?think>", "", before.removeprefix(prompt)).strip()


def _is_contradicted(folder: Path) -> bool:
    """Return whether tokenizer_config.json has another template than chat_template.jinja.

    transformers reads the file, and what is older than that file reads the other one.
    """
    settings = _settings(folder)
    other = _template_in(settings)
    if not other or not (folder / TEMPLATE_FILE).exists():
        return False
    question = {"role": "user", "content": QUESTION}
    chat = [question, {"role": "assistant", "content": _ANSWER}, question]
    try:
        return any(
            render(template_of(folder), settings, turns) != render(other, settings, turns)
            for turns in ([question], chat)
        )
    except Exception:  # noqa: BLE001 - whatever a template raises
        return True


def try_chat(folder: Path) -> str:
    """Say what is wrong with the chat template; '' if nothing is."""
    template = template_of(folder)
    if not template:
        return ""  # the folder's check says so
    try:
        text, begun = render(template, _settings(folder)), opening(folder)
    except jinja2.TemplateSyntaxError as error:
        wrong = f", line {error.lineno}: {error.message}"
    except Exception as error:  # noqa: BLE001 - whatever a template raises
        wrong = f": {type(error).__name__}: {error}"
    else:
        wrong = ""
        if len(text) > LONGEST * len(QUESTION):
            wrong = f": a question of {len(QUESTION)} characters becomes {len(text)}"
        elif QUESTION.strip() not in text:
            wrong = ": the prompt does not contain the question"
        elif not _OPENING.fullmatch(begun := begun or _other_opening(folder)):
            wrong = f": it begins the response with {begun!r}, which is no open or empty thought"
        elif _is_contradicted(folder):
            wrong = (
                f": {TEMPLATE_FILE} renders a chat otherwise than the chat_template of "
                "tokenizer_config.json, and programs read one or the other; remove the wrong one"
            )
        elif header := _missing_header(folder):
            wrong = (
                f": a prompt ends without {header!r}, which stands before an answer in a chat; "
                "add_generation_prompt has to write it"
            )
    return f"chat template{wrong}" if wrong else ""


def _later_tokens(folder: Path, tokenizer: Tokenizer) -> set[str]:
    """Return the special tokens that transformers adds behind the vocabulary of tokenizer.json."""
    settings = _settings(folder)
    entries = [value for name, value in settings.items() if name.endswith("_token")]
    for name in ("additional_special_tokens", "extra_special_tokens"):
        listed = settings.get(name) or []
        entries += listed.values() if isinstance(listed, dict) else listed
    texts = {value.get("content") if isinstance(value, dict) else value for value in entries}
    return {one for one in texts if isinstance(one, str) and tokenizer.token_to_id(one) is None}


def main(folder: Path) -> dict[str, object]:
    """Try the tokenizer, then the template."""
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.encode(QUESTION, add_special_tokens=False)
        highest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        later = _later_tokens(folder, tokenizer)
        highest += len(later)
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        return {"wrong": f"tokenizer.json: {type(error).__name__}: {error}"}
    settings = _settings(folder)
    end, listed = settings.get("eos_token"), settings.get("added_tokens_decoder")
    end = end.get("content") if isinstance(end, dict) else end
    entries = listed.values() if isinstance(listed, dict) else ()
    known = [entry.get("content") for entry in entries if isinstance(entry, dict)]
    if isinstance(end, str) and end in later and end not in known:
        return {"wrong": f"tokenizer.json has no token {end!r}, the eos_token"}
    try:
        return {"highest": highest, "wrong": try_chat(folder)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, MemoryError) as error:
        return {"wrong": f"chat template: {type(error).__name__}: {error}"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
