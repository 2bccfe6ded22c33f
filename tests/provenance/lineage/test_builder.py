"""What a stage ran on."""

import importlib.metadata

import pytest

from tasks.platform.source import lock_files
from tasks.provenance.lineage.builder import (
    agrees,
    container_image,
    environment_digest,
    lock_digest,
    packages,
)
from tasks.store.files import sha256_file


def test_the_environment_is_the_same_as_long_as_nothing_is_installed():
    first = environment_digest()
    packages.cache_clear()

    assert first == environment_digest()
    assert 64 == len(first)


def test_the_metadata_of_a_distribution_is_parsed_once(monkeypatch):
    reads = []

    class Package:
        @property
        def metadata(self):
            reads.append(self)
            return {"Name": "torch", "Version": "2.0"}

    monkeypatch.setattr(importlib.metadata, "distributions", lambda: [Package()])
    packages.cache_clear()
    try:
        assert (("torch", "2.0"),) == packages()
        environment_digest()
        lock_digest.__wrapped__()
    finally:
        packages.cache_clear()

    assert 1 == len(reads)


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        ("torch-geo==2.0\nnumpy==1.0", True),
        ("Torch_Geo==2.0+cpu", False),
        ("numpy==1.0\npandas==3.0", False),
        ("numpy==1.0\npandas==3.0 ; python_version < '3'", True),
        (
            "numpy==1.0 ; python_version >= '3' \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb",
            True,
        ),
        ("# nothing", False),
        ("-r other.txt", False),
    ],
)
def test_a_lock_is_named_only_if_all_its_pins_are_installed(tmp_path, lock, expected):
    path = tmp_path / "lock.txt"
    path.write_text(lock)

    assert expected == agrees(path, {"torch-geo": "2.0", "numpy": "1.0"})


def test_the_lock_is_one_of_the_projects_or_none():
    known = {sha256_file(path) for path in lock_files().values()}

    assert lock_digest() in known | {""}


def test_the_container_is_the_image_that_flyte_names(monkeypatch):
    monkeypatch.delenv("FLYTE_INTERNAL_IMAGE", raising=False)
    assert "" == container_image()

    monkeypatch.setenv("FLYTE_INTERNAL_IMAGE", "registry/cpu@sha256:ab")
    assert "registry/cpu@sha256:ab" == container_image()
