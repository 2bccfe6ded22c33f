"""What the comparison of prompts computed once and per answer has on its two sides."""

import pytest
import torch

from data_schemas.rl_settings import RLSettings
from data_schemas.rows import Domain
from tasks.errors import SettingsError
from tasks.rl import step_snapshot
from tasks.rl.phase import Phase, train
from tests.bench.rl_job import InlineScorer, problems
from tests.bench.shared_prompts import main, packed_rows, recorded_update, without_sharing
from tests.engines.trainer_megatron.batches import beginnings, grouped_batch


@pytest.fixture(scope="module")
def snapshot(tiny_moe, tmp_path_factory):
    """The file of a recorded step."""
    settings = RLSettings(
        domains={Domain.MATHS: 1.0},
        steps=1,
        prompts_per_step=3,
        group_size=4,
        max_new_tokens=6,
        num_mini_batches=1,
    )
    folder = tmp_path_factory.mktemp("phase")
    list(train(Phase(settings, tiny_moe, problems(8), folder, "test"), InlineScorer(tiny_moe)))
    (path,) = step_snapshot.find_snapshots(folder, 1)
    return path


def test_an_update_is_rebuilt_from_its_snapshot(snapshot):
    batch, vocabulary = recorded_update(snapshot)
    read = step_snapshot.decode(snapshot.read_bytes())
    tokens = read.outputs["tokens_NT"]

    assert read.vocabulary == vocabulary
    assert len(tokens) == len(batch.lengths_N)
    assert set(map(tuple, tokens.tolist())) == set(map(tuple, batch.tokens_NT.tolist()))
    assert batch.experts_NTLK is not None


def test_one_side_shares_all_beginnings_and_the_other_none():
    batch = grouped_batch()
    apart, tokens = without_sharing(batch, 300), int(batch.lengths_N.sum())

    assert beginnings(batch) == packed_rows(batch, 8192) < tokens
    assert tokens == packed_rows(apart, 8192)
    assert torch.equal(batch.tokens_NT[:, 1:], apart.tokens_NT[:, 1:])


def test_more_sequences_than_tokens_are_refused():
    with pytest.raises(SettingsError, match="9 sequences cannot begin with 8 different tokens"):
        without_sharing(grouped_batch(), 8)


def test_the_table_has_every_step(snapshot, tiny_moe, capsys):
    main([str(snapshot), str(snapshot), "--rounds", "1", "--model", str(tiny_moe)])

    lines = capsys.readouterr().out.splitlines()
    assert 3 <= sum(line.split()[:1] == ["torch"] for line in lines)
