"""Environment variables that are read as a module is imported."""

import os
import re
import sys
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
_SECRET = re.compile(
    r"(?P<variable>[A-Z_][A-Z0-9_]*)=(?P<group>[A-Za-z0-9._-]+)/(?P<key>[A-Za-z0-9._-]+)"
)
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_LABEL = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9][A-Za-z0-9._-]*=[A-Za-z0-9][A-Za-z0-9._-]*")
_PRICE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ([A-Z]{3})")
_QUANTITY = re.compile(r"[1-9][0-9]*(Mi|Gi|Ti)")
_SIZES = {"cpu", "memory", "disk"}
_MACHINE = {
    "cpu": re.compile(r"[1-9][0-9]*"),
    "memory": _QUANTITY,
    "disk": _QUANTITY,
    "gpus": re.compile(r"[1-9][0-9]*"),
    "accelerator": re.compile(r"[a-z0-9][a-z0-9.-]*"),
}
"""Part of a machine -> its form."""
_UNKNOWN = re.compile(r"(?!)")
WRONG_INPUT = 2
"""Exit code of everything that was typed wrong; also what click and argparse exit with."""


def read(variable: str, default: str, parse: Callable[[str], Value]) -> Value:
    """Read a variable. A wrong value ends the process with one line: no command can run with it.

    Args:
        variable: its name.
        default: what an unset variable stands for.
        parse: raises ValueError, of which SettingsError is one, with what is allowed.
    """
    text = os.environ.get(variable, default)
    try:
        return parse(text)
    except ValueError as error:
        value_text = "not readable" if parse is secrets else repr(text)
        sys.stderr.write(f"SettingsError: {variable} is {value_text}; {error}\n")
        sys.exit(WRONG_INPUT)


def positive(text: str) -> int:
    """Read a count.

    Raises:
        ValueError: it is none.
    """
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise ValueError("give a whole number from 1 on")
    return int(text)


def image(text: str) -> str:
    """Read the reference of a container image.

    Raises:
        ValueError: it is empty or has white space.
    """
    if not text or text.split() != [text]:
        raise ValueError("name an image by tag or digest: registry/name:tag")
    return text


def switch(text: str) -> bool:
    """Read yes or no.

    Raises:
        ValueError: it is neither 1 nor 0.
    """
    if text not in ("0", "1"):
        raise ValueError("give 1 or 0")
    return text == "1"


def machine(text: str) -> dict[str, str]:
    """Read what a kind of pod asks for: cpu=8,memory=32Gi,disk=200Gi, with GPUs also their number.

    Raises:
        ValueError: it does not have that form.
    """
    parts = (part.strip().partition("=") for part in text.split(","))
    values = {name: value for name, _, value in parts}
    fits = all(_MACHINE.get(name, _UNKNOWN).fullmatch(value) for name, value in values.items())
    has_gpus = "gpus" in values
    if not fits or values.keys() < _SIZES or has_gpus != ("accelerator" in values):
        raise ValueError(
            "give cpu=8,memory=32Gi,disk=200Gi, and with GPUs ,gpus=8,accelerator=nvidia-h100 too"
        )
    return values


def secrets(text: str) -> dict[str, tuple[str, str]]:
    """Read VARIABLE=group/key, separated by commas: which secret of the cluster fills a variable.

    Raises:
        ValueError: an entry does not have that form.
    """
    secrets_by_name: dict[str, tuple[str, str]] = {}
    for entry in (part.strip() for part in text.split(",") if part.strip()):
        match = _SECRET.fullmatch(entry)
        if match is None:
            # The entry itself may be a password that was pasted here.
            raise ValueError("give VARIABLE=group/key, separated by commas")
        secrets_by_name[match["variable"]] = match["group"], match["key"]
    return secrets_by_name


def name(text: str) -> str:
    """Read the name of an object of Kubernetes; '' is none.

    Raises:
        ValueError: it is no such name.
    """
    if text and not _NAME.fullmatch(text):
        raise ValueError("give a name of lower-case letters, digits and dashes")
    return text


def price(text: str) -> tuple[float, str]:
    """Read an amount and its currency, '2.50 EUR'; '' is no price.

    Raises:
        ValueError: it does not have that form.
    """
    if not text:
        return 0.0, ""
    if not (match := _PRICE.fullmatch(text)):
        raise ValueError("give the price of one GPU for an hour and its currency: 2.50 EUR")
    return float(match[1]), match[2]


def labels(text: str) -> dict[str, str]:
    """Read labels of Kubernetes: key=value, separated by commas.

    Raises:
        ValueError: an entry does not have that form.
    """
    entries = [part.strip() for part in text.split(",") if part.strip()]
    if not all(_LABEL.fullmatch(one) for one in entries):
        raise ValueError("give key=value, separated by commas: kueue.x-k8s.io/queue-name=training")
    return dict(one.split("=") for one in entries)


def addresses(text: str) -> tuple[str, ...]:
    """Read e-mail addresses separated by commas; none if the text is empty.

    Raises:
        ValueError: one of them is no address.
    """
    entries = tuple(part.strip() for part in text.split(",") if part.strip())
    for address in entries:
        name, at, domain = address.partition("@")
        if not (name and at and domain) or address.split() != [address]:
            raise ValueError("separate e-mail addresses by commas: a@shop.example,b@shop.example")
    return entries
