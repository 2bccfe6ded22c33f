#!/usr/bin/env bash
# Expected: LEFT JOIN gives NULL where the right side has no row, and the mean leaves it out, as in
# every other engine of SQL. Seen: a rollout without a verdict has reward 0 and an empty reason, and the
# mean counts it; max over no rows is 0 too, while avg over no rows is NaN. The setting join_use_nulls
# brings NULL back. Version: chdb 4.4.0 (core 26.9.0). Matters: a verifier that did not answer becomes one that said
# "wrong".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check chdb==4.4.0 chdb-core==26.9.0
cat > show.py <<'PYTHON'
import json

import chdb

rollouts = "(select arrayJoin([1, 2, 3, 4]) as rollout)"
verdicts = "(select number + 1 as rollout, 1.0 as reward, 'equal' as reason from numbers(2))"
joined = f"from {rollouts} as a left join {verdicts} as b using rollout"


def rows(query):
    return [json.loads(line) for line in str(chdb.query(f"{query} format JSONEachRow")).splitlines()]


seen = rows(f"select rollout, reward, reason {joined} order by rollout")
print(seen)
assert [row["reward"] for row in seen] == [1, 1, 0, 0] and seen[3]["reason"] == ""
mean = rows(f"select avg(reward) as mean {joined}")
nulls = rows(f"select avg(reward) as mean {joined} settings join_use_nulls = 1")
print("mean:", mean, "with join_use_nulls:", nulls)
assert mean == [{"mean": 0.5}] and nulls == [{"mean": 1}]
PYTHON
HOME=$folder venv/bin/python show.py
