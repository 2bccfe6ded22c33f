"""What ranks send each other is data: a message cannot make an object of any other kind."""

import io

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
