"""Problems whose answer is a call are asked, paid and served in one form: that of the base."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from data_schemas.rows import Message, Problem, Role
from tasks.algorithms.tool_reward import ToolCall
from tasks.curation.adapters.tools import bfcl
from tasks.curation.call_forms import in_form
from tasks.curation.rows import RawRow
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.gym.table import score_batch
from tasks.gym.tools.forms import FORMS
from tasks.models.chat_trial import call_form

CALLS = {
    "hermes": """{{ '<tool_call>\\n{"name": "' + c.name + '", "arguments": ' }}"""
    """{{ c.arguments | tojson }}{{ '}\\n</tool_call>' }}""",
    "qwen3_xml": """{{ '<tool_call>\\n<function=' + c.name + '>\\n' }}{% for k, v in """
    """c.arguments | items %}{{ '<parameter=' + k + '>\\n' }}{{ v }}{{ '\\n</parameter>\\n' }}"""
    """{% endfor %}{{ '</function>\\n</tool_call>' }}""",
    "llama3_json": """{{ '{"name": "' + c.name + '", "parameters": ' }}"""
    """{{ c.arguments | tojson }}{{ '}' }}""",
    "pythonic": """{{ '[' + c.name + '(' }}{% for k, v in c.arguments | items %}{{ k }}="""
    """{{ v | tojson }}{% endfor %}{{ ')]' }}""",
}
BLOCK = "{{ '\\n\\n# Tools\\n' }}{% for t in tools %}{{ t | tojson + '\\n' }}{% endfor %}"


def template(form: str, *, block_in: str = "system") -> str:
    """A template of ChatML that offers tools behind the system text or before the question."""
    system, user = (BLOCK if block_in == one else "" for one in ("system", "user"))
    return (
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}"
        f"{{% if tools and m.role == 'user' and loop.index <= 2 %}}{user}{{% endif %}}"
        "{{ m.content }}"
        f"{{% if tools and m.role == 'system' %}}{system}{{% endif %}}"
        f"{{% for call in m.tool_calls or [] %}}{{% set c = call.function %}}{CALLS[form]}"
        "{% endfor %}{{ '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )


@pytest.fixture
def base(base_model: Path, tmp_path: Path):
    def write(text: str) -> Path:
        folder = shutil.copytree(base_model, tmp_path / "base", dirs_exist_ok=True)
        (folder / "chat_template.jinja").write_text(text)
        return folder

    return write


ROW = {
    "id": "simple_7",
    "question": [[{"role": "user", "content": "The area of 10 by 5?"}]],
    "function": [
        {
            "name": "area",
            "description": "Area.",
            "parameters": {
                "type": "dict",
                "properties": {"base": {"type": "float"}, "unit": {"type": "any"}},
                "required": ["base"],
            },
        }
    ],
    "ground_truth": [{"area": {"base": [10], "unit": [""]}}],
}


def problem_of(folder: Path) -> Problem:
    (item,) = in_form(bfcl(RawRow("1", "0" * 64, ROW)), folder)
    assert isinstance(item.record, Problem)
    return item.record


@pytest.mark.parametrize("form", sorted(CALLS))
def test_a_template_names_the_form_of_its_calls(base, form: str) -> None:
    assert form == call_form(base(template(form)))


def test_a_template_without_calls_has_no_form_and_changes_no_problem(base) -> None:
    folder = base("{% for m in messages %}{{ m.role + ': ' + m.content }}{% endfor %}")

    assert "" == call_form(folder)
    assert [] == in_form([], folder)
    (item,) = bfcl(RawRow("1", "0" * 64, ROW))
    assert [item] == in_form([item], folder)


def test_the_shipped_base_is_asked_with_its_whole_description_of_a_function(
    base_model: Path,
) -> None:
    problem = problem_of(base_model)

    listing, question = problem.messages[1].content.split("\n")
    assert {"number"} == {
        json.loads(listing)["function"]["parameters"]["properties"]["base"]["type"]
    }
    assert "The area of 10 by 5?" == question
    assert "hermes" == json.loads(problem.answer)["form"]


@pytest.mark.parametrize("block_in", ["system", "user"])
@pytest.mark.parametrize("form", sorted(CALLS))
def test_the_prompt_is_the_one_that_a_server_renders_of_the_tools(
    base, form: str, block_in: str
) -> None:
    folder = base(template(form, block_in=block_in))
    problem = problem_of(folder)
    tokenizer = load_tokenizer(folder)

    tools: list[Any] = [
        {
            "type": "function",
            "function": {
                "name": "area",
                "description": "Area.",
                "parameters": {
                    "type": "object",
                    "properties": {"base": {"type": "number"}, "unit": {}},
                    "required": ["base"],
                },
            },
        }
    ]
    served = tokenizer.apply_chat_template(
        [
            {
                "role": "system",
                "content": "If no function fits the request, answer in words and call none.",
            },
            {"role": "user", "content": "The area of 10 by 5?"},
        ],
        tools=tools,
        add_generation_prompt=True,
        tokenize=False,
    )
    assert served == tokenizer.decode(render_prompt(tokenizer, problem.messages).tolist())
    assert form == json.loads(problem.answer)["form"]
    right = [
        f"<think></think>{FORMS[name].write([ToolCall('area', {'base': 10})])}" for name in FORMS
    ]
    assert [name == form for name in FORMS] == [
        verdict.solved for verdict in score_batch([problem] * len(right), right)
    ]


def test_a_template_that_writes_calls_and_lists_no_tools_is_asked_in_words(base) -> None:
    problem = problem_of(base(template("hermes", block_in="nowhere")))

    system = problem.messages[0]
    assert Role.SYSTEM is system.role
    assert "<tool_call>" in system.content
    assert '"name": "area"' in system.content
    assert Message(role=Role.USER, content="The area of 10 by 5?") == problem.messages[1]
