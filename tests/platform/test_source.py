"""Which commit runs: where there is a checkout, and where there is none."""

import subprocess

import pytest

from tasks.platform.source import COMMIT_VARIABLE, commit


def git(folder, *words):
    named = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    command = ["git", "-C", str(folder), *named, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_checkout_says_its_commit_whatever_the_variable_says(tmp_path, monkeypatch):
    monkeypatch.setenv(COMMIT_VARIABLE, 40 * "a")
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "--message", "first")

    assert git(tmp_path, "rev-parse", "HEAD") == commit(tmp_path)


@pytest.mark.parametrize(
    ("named", "expected"), [(40 * "a", 40 * "a"), ("", ""), ("<script>", ""), ("main", "")]
)
def test_code_in_an_image_has_the_commit_that_it_was_given(tmp_path, monkeypatch, named, expected):
    monkeypatch.setenv(COMMIT_VARIABLE, named)

    assert expected == commit(tmp_path / "image")
