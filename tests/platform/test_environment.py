"""A wrong environment variable is one line with exit code 2, whatever imports the module."""

import sys
from pathlib import Path

import pytest

from tasks.platform import environment
from tests.processes import run_process

ROOT = Path(__file__).parents[2]
PYFLYTE = [str(Path(sys.executable).with_name("pyflyte")), "run"]
COUNT = "give a whole number from 1 on"


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5", "", " 1", "\u0661", "1_000"])
def test_a_count_is_a_whole_number_from_one_on(text):
    with pytest.raises(ValueError, match=COUNT):
        environment.positive(text)


@pytest.mark.parametrize("text", ["", " ", "a b", "a\n"])
def test_an_image_is_one_word(text):
    with pytest.raises(ValueError, match="name an image by tag or digest"):
        environment.image(text)


@pytest.mark.parametrize("text", ["yes", "", "2", " 1"])
def test_a_switch_is_one_or_nought(text):
    with pytest.raises(ValueError, match="give 1 or 0"):
        environment.switch(text)
    assert (True, False) == (environment.switch("1"), environment.switch("0"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cpu=8",
        "cpu=8,memory=32,disk=1Ti",
        "cpu=0,memory=32Gi,disk=1Ti",
        "cpu=8,memory=32Gi,disk=1Ti,gpus=8",
        "cpu=8,memory=32Gi,disk=1Ti,gpu=8,accelerator=x",
    ],
)
def test_a_machine_is_given_whole(text):
    with pytest.raises(ValueError, match="give cpu=8,memory=32Gi,disk=200Gi"):
        environment.machine(text)


@pytest.mark.parametrize("text", ["a", "a@", "@b", "a@b c@d", "a@b,c"])
def test_addresses_are_addresses(text):
    with pytest.raises(ValueError, match="separate e-mail addresses by commas"):
        environment.addresses(text)


@pytest.mark.parametrize("text", ["2.5", "EUR", "2,5 EUR", "2.5 eur", "-1 EUR"])
def test_a_price_has_a_currency(text):
    assert (2.5, "EUR") == environment.price("2.5 EUR")
    assert (0.0, "") == environment.price("")
    with pytest.raises(ValueError, match="give the price of one GPU"):
        environment.price(text)


@pytest.mark.parametrize("text", ["a", "a=", "=b", "a=b c", "a/b/c=d", "a=b,c"])
def test_labels_are_those_of_kubernetes(text):
    given = "kueue.x-k8s.io/queue-name=training, team=shop"

    assert {"kueue.x-k8s.io/queue-name": "training", "team": "shop"} == environment.labels(given)
    with pytest.raises(ValueError, match="give key=value, separated by commas"):
        environment.labels(text)


def test_secrets_are_named_by_group_and_key():
    given = "MLFLOW_TRACKING_PASSWORD=shop/mlflow, AWS_SECRET_ACCESS_KEY=shop.s3/key_1,"

    assert {
        "MLFLOW_TRACKING_PASSWORD": ("shop", "mlflow"),
        "AWS_SECRET_ACCESS_KEY": ("shop.s3", "key_1"),
    } == environment.secrets(given)


@pytest.mark.parametrize("text", ["planted-c0ffee", "A=planted-c0ffee", "a=g/k", "A=g/k/l", "A=/k"])
def test_a_secret_that_was_pasted_instead_of_named_is_not_repeated(text, monkeypatch, capsys):
    with pytest.raises(ValueError, match="give VARIABLE=group/key") as caught:
        environment.secrets(text)
    assert "planted" not in str(caught.value)
    monkeypatch.setenv("EACHPROMPT_SECRETS", text)
    with pytest.raises(SystemExit):
        environment.read("EACHPROMPT_SECRETS", "", environment.secrets)
    assert "planted" not in capsys.readouterr().err


@pytest.mark.parametrize("text", ["Trainer", "a b", "-a", "a_"])
def test_a_pod_template_has_a_name_of_kubernetes(text):
    assert "h100-trainer" == environment.name("h100-trainer")
    with pytest.raises(ValueError, match="lower-case letters"):
        environment.name(text)


def test_an_unset_variable_has_its_default(monkeypatch):
    monkeypatch.delenv("EACHPROMPT_NODES", raising=False)

    assert 3 == environment.read("EACHPROMPT_NODES", "3", environment.positive)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "variable", "value", "allowed"),
    [
        ([sys.executable, "-c", "import tasks.platform.resources"], "EACHPROMPT_NODES", "x", COUNT),
        ([*PYFLYTE, "workflows/audit.py", "audit"], "EACHPROMPT_PROCESSES", "0", COUNT),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
def test_a_wrong_variable_ends_a_command_with_one_line(tmp_path, command, variable, value, allowed):
    done = run_process(
        command,
        cwd=ROOT,
        variables={variable: value, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        check=False,
    )

    assert 2 == done.returncode, done.stderr
    lines = [line for line in done.stderr.splitlines() if "Warning" not in line and line.strip()]
    assert 1 == len(lines), lines
    assert lines[0].startswith(f"SettingsError: {variable} is {value!r}; {allowed}")
