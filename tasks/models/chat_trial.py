"""Renders one question with the chat template of a model directory and tokenises it: FOLDER.

A chat template is a program, and a tokenizer has expressions that may never end. `model_folder`
runs this file in a process of its own, under limits of processor time and memory; it imports
nothing of ours, so that it starts in a tenth of a second. It prints one JSON object: the highest
token id, or what is wrong.
"""

import json
import resource
import sys
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox
from tokenizers import Tokenizer

CPU_S = 10
MEMORY_BYTES = 8 * 2**30
"""Of addresses; the tokenizer of a vocabulary of 250,000 needs a tenth."""
QUESTION = "What is one plus one? " * 50
LONGEST = 100
"""A prompt may have as many times the characters of its question: tools and a long system text."""


class _Generation(jinja2.ext.Extension):
    """`{% generation %}`, which marks what an assistant said."""

    def __init__(self, environment: jinja2.Environment) -> None:
        super().__init__(environment)
        self.tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        """Return what is inside."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def template_of(folder: Path) -> str:
    """Return the chat template, as transformers chooses it; '' if there is none."""
    own = folder / "chat_template.jinja"
    if own.exists():
        return own.read_text(encoding="utf-8")
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    results = settings.get("chat_template") or ""
    if isinstance(results, list):
        results = {one["name"]: one["template"] for one in results}
    return results.get("default", "") if isinstance(results, dict) else results


def render(template: str, settings: dict[str, Any]) -> str:
    """Render a question as transformers does.

    Raises:
        TemplateError: it cannot be.
    """

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    tokens = {
        name: value["content"] if isinstance(value, dict) else value
        for name, value in settings.items()
        if name.endswith("_token") and isinstance(value, str | dict)
    }
    messages = [{"role": "user", "content": QUESTION}]
    return environment.from_string(template).render(
        messages=messages, tools=None, documents=None, add_generation_prompt=True, **tokens
    )


def try_chat(folder: Path) -> str:
    """Say what is wrong with the chat template; '' if nothing is."""
    template = template_of(folder)
    if not template:
        return ""  # the folder's check says so
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    where = "chat template"
    try:
        text = render(template, settings)
    except jinja2.TemplateSyntaxError as error:
        return f"{where}, line {error.lineno}: {error.message}"
    except Exception as error:  # noqa: BLE001 - whatever a template raises
        return f"{where}: {type(error).__name__}: {error}"
    if len(text) > LONGEST * len(QUESTION):
        return f"{where}: a question of {len(QUESTION)} characters becomes {len(text)}"
    if QUESTION.strip() not in text:
        return f"{where}: the prompt does not contain the question"
    return ""


def main(folder: Path) -> dict[str, object]:
    """Try the tokenizer, then the template."""
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.encode(QUESTION, add_special_tokens=False)
        highest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        return {"wrong": f"tokenizer.json: {type(error).__name__}: {error}"}
    try:
        return {"highest": highest, "wrong": try_chat(folder)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, MemoryError) as error:
        return {"wrong": f"chat template: {type(error).__name__}: {error}"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
