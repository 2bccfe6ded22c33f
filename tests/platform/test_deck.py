"""When a deck is published while its task runs."""

import os

import pytest
from flytekit import FlyteContextManager
from flytekit.core.context_manager import ExecutionState

from tasks.platform.deck import LIVE, TEAM_OUTPUTS, deck_of_team, deck_while_running


@pytest.fixture
def published(tmp_path):
    """Show pages in a context, and return the published deck, '' if there is none."""

    def show(mode: ExecutionState.Mode, *, enable_deck: bool) -> str:
        context = FlyteContextManager.current_context()
        params = context.user_space_params
        assert params is not None
        params = params.with_enable_deck(enable_deck).build()
        params.decks.clear()
        params._output_metadata_prefix = str(tmp_path / mode.name / str(enable_deck))
        state = context.new_execution_state().with_params(mode=mode, user_space_params=params)
        with FlyteContextManager.with_context(context.with_execution_state(state)):
            for page in ("first page", "second page"):
                deck_while_running(page)
        found = list(tmp_path.rglob("deck.html"))
        return found[0].read_text() if found else ""

    return show


def test_a_pod_shows_the_newest_page_once(published):
    shown = published(ExecutionState.Mode.TASK_EXECUTION, enable_deck=True)

    assert 1 == shown.count(f">{LIVE}<")
    assert "second page" in shown
    assert "first page" not in shown


def test_a_process_of_a_team_shows_the_newest_page_where_its_task_does(
    published, tmp_path, monkeypatch
):
    monkeypatch.setenv(TEAM_OUTPUTS, str(tmp_path / "of the task"))

    shown = published(ExecutionState.Mode.TASK_EXECUTION, enable_deck=False)

    assert 1 == shown.count(f">{LIVE}<")
    assert "second page" in shown


def test_only_processes_that_are_started_by_a_task_with_a_deck_are_told_where_it_is(tmp_path):
    context = FlyteContextManager.current_context()
    params = context.user_space_params
    assert params is not None
    builder = params.with_enable_deck(True)
    builder.output_metadata_prefix = str(tmp_path)
    for mode, told in (
        (ExecutionState.Mode.TASK_EXECUTION, str(tmp_path)),
        (ExecutionState.Mode.LOCAL_TASK_EXECUTION, None),
    ):
        state = context.new_execution_state().with_params(
            mode=mode, user_space_params=builder.build()
        )
        with FlyteContextManager.with_context(context.with_execution_state(state)):
            with deck_of_team():
                assert told == os.environ.get(TEAM_OUTPUTS)
            assert TEAM_OUTPUTS not in os.environ


def test_nothing_is_published_locally_or_without_a_deck(published, caplog):
    assert "" == published(ExecutionState.Mode.LOCAL_TASK_EXECUTION, enable_deck=True)
    assert "" == published(ExecutionState.Mode.TASK_EXECUTION, enable_deck=False)
    assert "publish()" not in caplog.text
