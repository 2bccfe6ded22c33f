"""What ranks send each other is data: a message cannot make an object of any other kind."""

import io
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import pytest
import torch

from tasks.engines.team import payloads


@pytest.mark.parametrize("item", [print, io.BytesIO(), (1, [{"one": object()}])])
def test_what_is_no_record_is_not_sent(item):
    with pytest.raises(ValueError, match="is not sent between ranks"):
        payloads.send(item, 1, None)


def test_tensors_of_dtypes_that_no_record_has_are_not_made():
    with pytest.raises(ValueError, match="tensors of storage are not sent"):
        payloads.empty_tensor("storage", [1])

    assert torch.int16 == payloads.empty_tensor("int16", [2, 3]).dtype


def classes_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for part in get_args(annotation):
        yield from classes_in(part)


@pytest.mark.parametrize("record", payloads.RECORDS)
def test_every_record_that_a_field_names_is_sent(record):
    named = {one for hint in get_type_hints(record).values() for one in classes_in(hint)}

    assert {one for one in named if is_dataclass(one)} <= set(payloads.RECORDS)
