"""Flyte task of AV-SpeakerBench: compare answers with and without sound and sight."""

from rich.console import Console

from tasks.errors import typed
from tasks.lab.recipes.av_speaker import fusion
from tasks.platform.resources import SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.store import location
from tasks.store.interface import store_at

add_stages(
    {"fusion_gain": Stage("lab.recipes.av_speaker.task", SMALL, "cpu", hours=WAIT, cached=False)}
)


@shell("fusion_gain")
def fusion_gain(both: str, video: str, audio: str, out: str) -> str:
    """Compare answers with sound and video with those without one; print and write the gains."""
    runs = {}
    for name, file in (("both", both), ("video", video), ("audio", audio)):
        if file or name == "both":
            with typed(f"--{name}"):
                source = location.existing_file(file, f"--{name}")
                runs[name] = fusion.read_answers(store_at(source).read_bytes().decode(), file)
    result = fusion.fusion(runs.pop("both"), runs)
    target = location.absolute_store(out, "--out")
    store_at(target).write_bytes(fusion.as_json(result))
    Console(highlight=False).print(fusion.as_table(result))
    return target
