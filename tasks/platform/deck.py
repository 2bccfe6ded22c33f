"""The deck of a task in Flyte's console: an HTML page, or a table of facts."""

import html as markup
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flytekit import Deck, FlyteContextManager
from flytekit.core.context_manager import ExecutionState

LIVE = "Live"
TEAM_OUTPUTS = "EACHPROMPT_TEAM_OUTPUTS"
"""Tells the processes of a team where their task's deck is: the plugin starts them without it."""
_TABLE_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem}td{padding:.3rem 1.5rem .3rem 0;"
    "border-bottom:1px solid #ddd}td+td{text-align:right;font-variant-numeric:tabular-nums}"
)


def deck(html: str) -> None:
    """Show a self-contained page on the task's deck, in an iframe."""
    _show("Report", html)


def deck_while_running(html: str) -> None:
    """Show a self-contained page on a second deck at once, instead of when the task ends.

    Does nothing where there is no deck to publish, as in a local execution.
    """
    context = FlyteContextManager.current_context()
    here, params = context.execution_state, context.user_space_params
    if here is None or here.mode is not ExecutionState.Mode.TASK_EXECUTION or params is None:
        return
    builder, outputs = params.builder(), os.environ.get(TEAM_OUTPUTS)
    if outputs:
        builder.enable_deck, builder.output_metadata_prefix = True, outputs
    if not builder.enable_deck:
        return
    # The new parameters share the list of decks, which the plugin collects when the task ends.
    state = here.with_params(user_space_params=builder.build())
    with FlyteContextManager.with_context(context.with_execution_state(state)):
        params.decks[:] = [one for one in params.decks if one.name != LIVE]
        _show(LIVE, html)
        Deck.publish()


@contextmanager
def deck_of_team() -> Iterator[None]:
    """Let the processes that are started in the block publish the deck of this task, if it has one.

    Its `deck_while_running` is called by one of them only, the one that runs the stage.
    """
    context = FlyteContextManager.current_context()
    here, params = context.execution_state, context.user_space_params
    in_pod = here is not None and here.mode is ExecutionState.Mode.TASK_EXECUTION
    if not in_pod or params is None or not params.enable_deck or not params.output_metadata_prefix:
        yield
        return
    os.environ[TEAM_OUTPUTS] = params.output_metadata_prefix
    try:
        yield
    finally:
        del os.environ[TEAM_OUTPUTS]


def _show(name: str, html: str) -> None:
    style = "width:100%;height:90vh;border:0"
    Deck(name, f'<iframe srcdoc="{markup.escape(html)}" style="{style}"></iframe>')


def deck_of_facts(title: str, facts: Mapping[str, float | int | str]) -> None:
    """Show the facts of a stage as a table on its deck."""
    texts = {
        name: f"{value:,.6g}" if isinstance(value, float) else str(value)
        for name, value in facts.items()
    }
    rows = "".join(
        f"<tr><td>{markup.escape(name)}</td><td>{markup.escape(value)}</td></tr>"
        for name, value in texts.items()
    )
    deck(f"<style>{_TABLE_STYLE}</style><h1>{markup.escape(title)}</h1><table>{rows}</table>")
