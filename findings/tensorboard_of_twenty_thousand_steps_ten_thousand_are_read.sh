#!/usr/bin/env bash
# Expected: the reader of TensorBoard's event files returns every scalar that was logged. Seen: it keeps
# 10,000 of a tag, drawn from all, and says nothing: of 20,000 steps of one token half the tokens are gone,
# and a single step at which the reward broke may be. size_guidance={"scalars": 0} reads all.
# Version: tensorboard 2.21.0. Matters: sums, minima and plots of a long run are read from a sample.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check tensorboard==2.21.0
cat > show.py <<'PYTHON'
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

STEPS = 20_000
writer = EventFileWriter("run")
for step in range(STEPS):
    values = [Summary.Value(tag="tokens", simple_value=1.0)]
    writer.add_event(Event(wall_time=float(step), step=step, summary=Summary(value=values)))
writer.close()

for guidance, expected in ((None, 10_000), ({"scalars": 0}, STEPS)):
    reader = EventAccumulator("run", size_guidance=guidance)
    reader.Reload()
    events = reader.Scalars("tokens")
    tokens = sum(event.value for event in events)
    print(f"size_guidance {guidance}: {len(events)} of {STEPS} steps, {tokens:.0f} tokens")
    assert len(events) == expected
PYTHON
HOME=$folder venv/bin/python show.py
