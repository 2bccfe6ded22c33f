"""A store of either kind."""

import pytest


@pytest.fixture(params=["disk", "s3"])
def place(request, tmp_path) -> str:
    """The uri of a store of either kind."""
    if request.param == "disk":
        return str(tmp_path / "some" / "store")
    request.getfixturevalue("bucket")
    return "s3://bucket/some/store"
