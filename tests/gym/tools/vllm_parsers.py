"""vLLM's reasoning parser deepseek_r1 and a tool parser, composed as its server composes them."""

from typing import Any

from tasks.training.foundation.base import shipped_base


def opened(name: str, tools: list[dict[str, Any]]) -> tuple[Any, Any, Any]:
    """Return tokenizer, request and parser of a server with the tool parser `name`."""
    from transformers import AutoTokenizer
    from vllm.entrypoints.openai.chat_completion.protocol import (  # pyright: ignore
        ChatCompletionRequest,
    )
    from vllm.parser import ParserManager  # pyright: ignore

    tokenizer = AutoTokenizer.from_pretrained(shipped_base())
    tokenizer.add_tokens(["<|python_tag|>"], special_tokens=True)  # llama3_json asks for it
    request = ChatCompletionRequest(
        model="m", messages=[{"role": "user", "content": "q"}], tools=tools, tool_choice="auto"
    )
    made = ParserManager.get_parser(
        tool_parser_name=name, reasoning_parser_name="deepseek_r1", enable_auto_tools=True
    )
    return tokenizer, request, made(tokenizer, request.tools, chat_template_kwargs={})


def parsed(
    name: str, response: str, tools: list[dict[str, Any]]
) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    """Return reasoning, content, and the calls by name and arguments of a whole response."""
    tokenizer, request, parser = opened(name, tools)
    ids = tokenizer(response, add_special_tokens=False)["input_ids"]
    reasoning, content, calls = parser.parse(
        response, request, enable_auto_tools=True, model_output_token_ids=ids
    )
    return reasoning, content, [(one.name, one.arguments) for one in calls or []]
