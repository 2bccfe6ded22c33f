"""The digest of a model's weights."""

import hashlib
import weakref

import torch

from tasks.algorithms.digests import joint_digest, tensor_digest, weight_digest

WEIGHTS = {"b": torch.arange(6, dtype=torch.float32).reshape(2, 3), "a": torch.tensor(2.0)}


def test_the_digest_is_a_hash_over_names_and_hashes_of_tensors_in_name_order():
    scalar = hashlib.sha256(b"torch.float32:()" + WEIGHTS["a"].numpy().tobytes()).hexdigest()
    matrix = hashlib.sha256(b"torch.float32:(2, 3)" + WEIGHTS["b"].numpy().tobytes()).hexdigest()
    expected = hashlib.sha256(f"a:{scalar}\nb:{matrix}\n".encode()).hexdigest()

    assert matrix == tensor_digest(WEIGHTS["b"])
    assert expected == weight_digest(WEIGHTS.items())


def test_the_order_in_which_tensors_arrive_does_not_matter():
    backwards = reversed(WEIGHTS.items())

    assert weight_digest(WEIGHTS.items()) == weight_digest(backwards)


def test_name_dtype_shape_and_every_value_matter():
    changed = [
        {"b": WEIGHTS["b"], "c": WEIGHTS["a"]},
        {"b": WEIGHTS["b"].double(), "a": WEIGHTS["a"]},
        {"b": WEIGHTS["b"].reshape(3, 2), "a": WEIGHTS["a"]},
        {"b": WEIGHTS["b"] + torch.eye(2, 3), "a": WEIGHTS["a"]},
        {"b": WEIGHTS["b"]},
    ]

    assert 6 == len({weight_digest(one.items()) for one in [WEIGHTS, *changed]})


def test_a_view_has_the_digest_of_its_values():
    transposed = WEIGHTS["b"].T

    assert tensor_digest(transposed.clone()) == tensor_digest(transposed)
    assert tensor_digest(torch.zeros(0, 2)) != tensor_digest(torch.zeros(0, 3))


def test_no_tensor_is_kept_while_the_next_one_comes():
    seen = []

    def stream():
        for name in "cab":
            assert not [one for one in seen[:-1] if one() is not None]
            tensor = torch.ones(4)
            seen.append(weakref.ref(tensor))
            yield name, tensor
            del tensor

    assert joint_digest(dict.fromkeys("abc", tensor_digest(torch.ones(4)))) == weight_digest(
        stream()
    )
