"""Load on the endpoint: the verdicts of this process, whatever other clients do."""

import pytest

from data_schemas.rl_settings import RewardSettings
from data_schemas.rollouts import ScoreRow
from tasks.engines.scoring import open_scoring
from tasks.gym import table
from tasks.gym.serving.endpoint import RequestLimits, open_endpoint
from tests.bench.reward_endpoint import disturbed, make_rows, send
from tests.processes import serving


@pytest.fixture(scope="module")
def port():
    with (
        open_scoring(None, RewardSettings(), num_workers=1) as scorer,
        open_endpoint(scorer, [], "127.0.0.1", 0, RequestLimits(body_s=0.5)) as server,
        serving(server),
    ):
        yield server.server_address[1]


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "active"), [(1, False), (16, False), (16, True)])
def test_concurrent_and_misbehaving_clients_change_no_verdict(port, batch, active):
    rows = make_rows(12)
    problems = [ScoreRow(**row).problem(place) for place, row in enumerate(rows)]
    expected = table.score_batch(problems, [row["response"] for row in rows])

    with disturbed(port, active=active) as sent:
        verdicts, latencies = send(port, rows, batch, clients=8)

    assert [verdict.model_dump() for verdict in expected] == verdicts
    assert -(-len(rows) // batch) == len(latencies)
    assert active == bool(sent)
