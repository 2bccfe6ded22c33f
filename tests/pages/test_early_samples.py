"""An early look at what fine-tuning teaches."""

import json

from tasks.pages.tuning_samples import SampledPrompt, tuning_samples


def test_every_prompt_has_its_demonstration_and_the_answer_of_each_epoch(run):
    groups = tuning_samples(run.tunings)

    assert ["sft/reasoning", "sft/commerce"] == [group.title for group in groups]
    assert (
        SampledPrompt(
            title="maths: d/7",
            prompt="What is 3 < 4?",
            rows=(
                ("demonstration", "<think>true</think>yes"),
                ("epoch 1", "<think>epoch 1"),
                ("epoch 2", "<think>epoch 2"),
                ("epoch 3, chosen", "<think>epoch 3"),
            ),
        ),
    ) == groups[0].prompts


def test_a_report_without_samples_shows_none(run):
    path = run.tunings["sft/commerce"] / "epochs.json"
    kept = [
        {k: v for k, v in one.items() if k != "samples"} for one in json.loads(path.read_text())
    ]
    path.write_text(json.dumps(kept))

    assert ["sft/reasoning"] == [group.title for group in tuning_samples(run.tunings)]
