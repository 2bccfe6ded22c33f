import math

import pytest
import torch

from tasks.algorithms.merging.slerp import LINEAR_ABOVE, coefficients, cosine, slerp
from tasks.errors import SettingsError

EAST, NORTH = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])


def test_halfway_between_right_angles_is_the_unit_diagonal():
    found = slerp(torch.stack([EAST, NORTH]), torch.ones(2))

    torch.testing.assert_close(found, torch.tensor([math.sqrt(0.5), math.sqrt(0.5)]))


def test_a_third_of_a_right_angle_is_thirty_degrees():
    found = slerp(torch.stack([EAST, NORTH]), torch.tensor([2.0, 1.0]))

    torch.testing.assert_close(found, torch.tensor([math.sqrt(3.0) / 2.0, 0.5]))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_unit_vectors_stay_on_the_sphere(share):
    generator = torch.Generator().manual_seed(0)
    pair_M = torch.nn.functional.normalize(torch.randn(2, 50, generator=generator), dim=1)

    found = slerp(pair_M, torch.tensor([1.0 - share, share]))

    assert 1.0 == pytest.approx(float(found.norm()), abs=1e-5)


def test_nearly_parallel_opposite_and_zero_tensors_are_interpolated_linearly():
    near = torch.tensor([1.0, 0.01])
    assert cosine(EAST, near) > LINEAR_ABOVE

    for other in (near, -EAST, torch.zeros(2)):
        assert (0.75, 0.25) == coefficients(EAST, other, 0.25)


def test_the_cosine_of_a_thousandth_of_a_degree_is_exact():
    angle = math.radians(0.001)
    # fp32 cannot tell this cosine from 1; the length of the difference can.
    turned = torch.tensor([math.cos(angle), math.sin(angle)])

    assert 1.0 - cosine(EAST, turned) == pytest.approx(1.0 - math.cos(angle), rel=1e-3)


def test_three_models_are_refused():
    with pytest.raises(SettingsError, match="slerp merges two models, got 3"):
        slerp(torch.ones(3, 2), torch.ones(3))
