"""The deck of a task in Flyte's console: an HTML page, or a table of facts."""

import html as markup
from collections.abc import Mapping

from flytekit import Deck, FlyteContextManager
from flytekit.core.context_manager import ExecutionState

LIVE = "Live"
_TABLE_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem}td{padding:.3rem 1.5rem .3rem 0;"
    "border-bottom:1px solid #ddd}td+td{text-align:right;font-variant-numeric:tabular-nums}"
)


def deck(html: str) -> None:
    """Show a self-contained page on the task's deck, in an iframe."""
    _show("Report", html)


def deck_while_running(html: str) -> None:
    """Show a self-contained page on a second deck at once, instead of when the task ends.

    Does nothing where there is no deck to publish: in a local execution, and in the processes of
    a team, whose decks the plugin collects when the task ends.
    """
    context = FlyteContextManager.current_context()
    here, params = context.execution_state, context.user_space_params
    if here is None or here.mode is not ExecutionState.Mode.TASK_EXECUTION:
        return
    if params is None or not params.enable_deck:
        return
    params.decks[:] = [shown for shown in params.decks if shown.name != LIVE]
    _show(LIVE, html)
    Deck.publish()


def _show(name: str, html: str) -> None:
    style = "width:100%;height:90vh;border:0"
    Deck(name, f'<iframe srcdoc="{markup.escape(html)}" style="{style}"></iframe>')


def deck_of_facts(title: str, facts: Mapping[str, float | int | str]) -> None:
    """Show the facts of a stage as a table on its deck."""
    shown = {
        name: f"{value:,.6g}" if isinstance(value, float) else str(value)
        for name, value in facts.items()
    }
    rows = "".join(
        f"<tr><td>{markup.escape(name)}</td><td>{markup.escape(value)}</td></tr>"
        for name, value in shown.items()
    )
    deck(f"<style>{_TABLE_STYLE}</style><h1>{markup.escape(title)}</h1><table>{rows}</table>")
