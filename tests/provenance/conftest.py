"""A real MLflow server is slower than a file: of most test files one case is enough every day."""

import pytest

WRITING = ("test_stage.py",)
"""Files whose every case is run on a server: what they prove is how things get there."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave a server to the nightly run, after each file's first test on one."""
    seen = set(WRITING)
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters and "server" in parameters.params.values():
            if item.path.name in seen and item.path.name not in WRITING:
                item.add_marker(pytest.mark.slow)
            seen.add(item.path.name)
