"""A real MLflow server is slower than a file: most of what is proved on one waits for the night."""

import pytest

WRITING = ("test_stage.py",)
"""Files whose every case is run on a server every day: what they prove is how things get there."""
READING = ("test_audit.py", "test_promotion.py")
"""Files whose first case is: a whole release is read back, and an alias moved."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave a server to the nightly run, but for these; a file of sqlite is tried every day."""
    seen = set()
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters and "server" in parameters.params.values():
            name = item.path.name
            if name not in WRITING and (name not in READING or name in seen):
                item.add_marker(pytest.mark.slow)
            seen.add(name)
