"""The release folder: loadable as it is, with everything it rests on named."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from markdown_it import MarkdownIt

from data_schemas.artifacts import CheckpointRef
from data_schemas.reports import (
    Baseline,
    Comparison,
    EvaluationReport,
    GateDecision,
    ReleaseManifest,
    SuiteScore,
)
from data_schemas.settings import ReleaseSettings
from data_schemas.statements import Input, Output, Statement
from tasks.errors import DataError, SettingsError, TamperError
from tasks.gym.error_rates import examination, rates_of
from tasks.provenance.lineage.statements import save_statement
from tasks.provenance.release.card import model_card, usage
from tasks.provenance.release.publish import publish
from tasks.provenance.release.release import ReleaseCandidate, release
from tasks.store.files import sha256_file
from tasks.store.local import NewObject, new_object
from tasks.store.manifest import MANIFEST, folder_manifest
from tasks.training.foundation.base import shipped_base
from tests.records import filled, suite_score

RAW = """[{"adapter": "gsm8k", "uri": "gsm8k.jsonl", "sha256": "r1", "bytes": 3, "limit": 0,
"source": 0}, {"adapter": "mbpp", "uri": "/data/mbpp.jsonl", "sha256": "r2", "bytes": 3,
"limit": 0, "source": 1}]"""


def evaluation(model: str, checkpoint: str, accuracy: float) -> EvaluationReport:
    def suite(name: str, shift: float = 0.0) -> SuiteScore:
        return suite_score(
            accuracy + shift,
            suite=name,
            problems=60,
            low=accuracy + shift - 0.04,
            high=accuracy + shift + 0.06,
            score=accuracy,
            pass_at_k=accuracy + 0.2,
            abstained=2,
        )

    return filled(
        EvaluationReport,
        model=model,
        checkpoint=checkpoint,
        suites=(suite("all"), suite("domain:maths", 0.1), suite("language:th")),
        truncated_share=0.05,
        mean_response_tokens=10.0,
        mean_entropy_nats=0.5,
    )


def gate(*, released: bool) -> GateDecision:
    lost = Comparison(
        suite="domain:maths", parent="merged", difference=-0.02, low=-0.1, high=0.1, problems=60
    )
    reason = "passed: gain over merged" if released else "FAILED: gain over merged"
    return GateDecision(released=released, reasons=(reason,), comparisons=(lost,))


class Made:
    """Objects and statements written by hand: ingest -> rl -> evaluate."""

    def __init__(self, store: Path) -> None:
        self.store = store
        raw = self.commit({"gsm8k.jsonl": b"raw", "raw_files.json": RAW.encode()})
        model = self.commit({"config.json": b"{}", "model.safetensors": b"weights"})
        scores = self.commit({"a.json": b"{}"})
        shipped = Input(role="shipped", uri="file:///base", digest="s1", statement="")
        self.ingest = self.state("ingest", [], raw)
        read = Input(role="raw", uri=raw.uri, digest=raw.digest, statement=self.ingest)
        self.rl = self.state("rl/two", [shipped, read], model)
        read = Input(role="model", uri=model.uri, digest=model.digest, statement=self.rl)
        self.evaluate = self.state("evaluate", [read], scores)
        self.digests = {raw.digest, model.digest, scores.digest}
        self.raw = raw
        ref = CheckpointRef(uri=model.uri, digest=model.digest, statement=self.rl)
        progression = [evaluation("base", "b" * 64, 0.3), evaluation("rl/two", model.digest, 0.5)]
        self.candidate = ReleaseCandidate(
            ref, Path(model.uri), [self.evaluate], progression, gate(released=True)
        )

    def commit(self, files: dict[str, bytes]) -> NewObject:
        with new_object(self.store) as (folder, committed):
            for name, payload in files.items():
                (folder / name).write_bytes(payload)
        return committed

    def state(self, stage: str, inputs: list[Input], made: NewObject) -> str:
        statement = filled(
            Statement,
            stage=stage,
            inputs=tuple(inputs),
            outputs=(Output(role="made", uri=made.uri, digest=made.digest),),
            facts={"rows": 3},
        )
        return save_statement(str(self.store), statement)


@pytest.fixture
def made(tmp_path) -> Made:
    return Made(tmp_path / "store")


@pytest.fixture
def out(tmp_path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_the_release_states_how_often_its_verifiers_err_and_what_nobody_measured(made, out):
    rates = rates_of(["final_answer", "choice", "my_reward.py:short_enough@" + "0" * 64])
    candidate = replace(made.candidate, verifiers=rates)

    facts = release(ReleaseSettings(), candidate, str(made.store), out)

    known = {one.verifier: one for one in examination().rates}["choice"].false_negative
    stated = f"{100 * known.count / known.of:.2f} % ({100 * known.low:.2f} to"
    assert str(facts["false_negative/choice"]).startswith(stated)
    assert str(facts["false_negative/choice"]).endswith(f"of {known.of}")
    own = "my_reward.py:short_enough"
    assert "not measured" == facts[f"false_positive/{own}"] == facts[f"false_negative/{own}"]
    assert examination().sha256 == facts["verifier_evidence_sha256"]
    card = (out / "README.md").read_text()
    assert f"| `{own}` | not measured | not measured |" in card
    rows = " | ".join(str(facts[f"{kind}/choice"]) for kind in ("false_positive", "false_negative"))
    assert f"| `choice` | {rows} |" in card
    assert examination().sha256 in card
    manifest = ReleaseManifest.model_validate_json((out / "manifest.json").read_bytes())
    assert rates == manifest.verifiers


def test_a_release_without_curated_problems_states_no_rates(made, out):
    facts = release(ReleaseSettings(), made.candidate, str(made.store), out)

    assert not [name for name in facts if name.startswith(("false_", "verifier_"))]


def test_the_folder_is_the_checkpoint_with_manifest_gate_and_card(made, out):
    facts = release(ReleaseSettings(), made.candidate, str(made.store), out)

    written = {"manifest.json", "gate.json", "README.md", "bom.cdx.json", ".eval_results"}
    assert {"config.json", "model.safetensors"} | written == {path.name for path in out.iterdir()}
    assert b"weights" == (out / "model.safetensors").read_bytes()
    assert gate(released=True) == GateDecision.model_validate_json((out / "gate.json").read_bytes())
    assert {
        "released": 1,
        "manifest_sha256": sha256_file(out / "manifest.json"),
        "version": made.candidate.checkpoint.digest[:12],
        "statements": 3,
        "objects": 3,
        "raw_files": 3,
        "accuracy/all": 0.5,
        "accuracy/domain:maths": 0.6,
        "accuracy/language:th": 0.5,
    } == facts


def test_the_manifest_names_everything_that_went_in(made, out):
    release(ReleaseSettings(), made.candidate, str(made.store), out)
    manifest = ReleaseManifest.model_validate_json((out / "manifest.json").read_bytes())

    assert {made.ingest, made.rl, made.evaluate} == set(manifest.statements)
    assert made.digests == set(manifest.objects)
    assert {
        f"objects/{made.raw.digest[:16]}/gsm8k.jsonl": "r1",
        "mbpp.jsonl@r2": "r2",
        "base@s1": "s1",
    } == manifest.raw_files
    assert made.candidate.checkpoint.digest == manifest.checkpoint


def test_the_same_candidate_gives_the_same_folder(made, out, tmp_path):
    (tmp_path / "again").mkdir()
    for folder in (out, tmp_path / "again"):
        release(ReleaseSettings(), made.candidate, str(made.store), folder)

    assert folder_manifest(out) == folder_manifest(tmp_path / "again")


def test_a_refused_candidate_gets_its_folder_and_a_card_that_says_so(made, out):
    refused = replace(made.candidate, decision=gate(released=False))
    facts = release(ReleaseSettings(), refused, str(made.store), out)
    card = (out / "README.md").read_text()

    assert 0 == facts["released"]
    assert "It did not pass the release gate." in card
    assert "## Why it was not released" in card
    assert "- FAILED: gain over merged" in card
    # MLflow's description is cut at its end.
    assert card.index("- FAILED: gain over merged") < card.index("## Evaluation")
    assert "Do not serve it." in card


def test_the_hub_reads_the_card(made, out):
    release(ReleaseSettings(name="tiny"), made.candidate, str(made.store), out)
    data = ModelCard((out / "README.md").read_text()).data
    results = {
        (result.dataset_name, result.metric_type): result.metric_value
        for result in data.eval_results or []
    }

    assert "tiny" == data.model_name
    assert ["th"] == data.language
    assert ["reasoning", "reinforcement-learning"] == data.tags
    assert (None, None) == (data.base_model, data.datasets)  # the hub has neither
    assert 0.5 == results["held-out, all", "accuracy"]
    assert 0.6 == results["held-out, domain:maths", "accuracy"]
    assert 0.7 == results["held-out, domain:maths", "pass@k"]
    assert 4 == len(results)


def test_the_license_is_that_of_the_card_of_the_base_model(made, out):
    card = b"---\nlicense: apache-2.0\nlanguage: en\n---\n# Base\n"
    config = b'{"_name_or_path": "Qwen/Qwen3-0.6B"}'
    base = made.commit({"config.json": config, "README.md": card})
    digest = made.state("ingest/base", [], base)
    read = Input(role="base", uri=base.uri, digest=base.digest, statement=digest)
    model = made.commit({"config.json": b"{}", "model.safetensors": b"others"})
    ref = CheckpointRef(
        uri=model.uri, digest=model.digest, statement=made.state("rl/two", [read], model)
    )
    progression = [evaluation("rl/two", model.digest, 0.5)]
    candidate = replace(made.candidate, checkpoint=ref, progression=progression)
    release(ReleaseSettings(), candidate, str(made.store), out)

    data = ModelCard((out / "README.md").read_text()).data
    assert ("apache-2.0", "Qwen/Qwen3-0.6B", "finetune") == (
        data.license,
        data.base_model,
        data.base_model_relation,
    )


def test_the_card_shows_how_to_load_the_model_and_what_it_shows_runs(
    made, out, tiny_moe, monkeypatch, capsys
):
    release(ReleaseSettings(name="tiny"), made.candidate, str(made.store), out)
    card = (out / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)

    monkeypatch.chdir(tiny_moe)
    names = {}
    exec(compile(program, "README.md", "exec"), names)

    assert capsys.readouterr().out
    assert names["answer"].shape[1] > names["prompt"]["input_ids"].shape[1]
    assert "vllm.entrypoints.openai.api_server --model . --served-model-name tiny" in card
    assert "--reasoning-parser" not in card  # its files have no tokenizer


@pytest.mark.parametrize(
    ("template", "options"),
    [
        ("", ["--reasoning-parser deepseek_r1"]),
        ("<think>\n", ["--reasoning-parser deepseek_r1"]),
        ("<think>\n\n</think>\n\n", []),
    ],
)
def test_the_cards_server_has_the_parsers_of_the_chat_template(tmp_path, template, options):
    folder = shutil.copytree(shipped_base(), tmp_path / "model")
    file = folder / "chat_template.jinja"
    file.write_text(file.read_text().replace("assistant\n", f"assistant\n{template}"))

    text = usage("tiny", folder)

    assert [*options, "--tool-call-parser hermes"] == re.findall(
        r"--(?:reasoning|tool-call)-parser \w+", text
    )
    assert "a call is text" not in text


def test_a_card_says_where_no_server_reads_the_calls_of_the_chat_template(tmp_path):
    folder = shutil.copytree(shipped_base(), tmp_path / "model")
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% endfor %}"
    )

    text = usage("tiny", folder)

    assert "--tool-call-parser" not in text
    assert "a call is text, as the prompt asks for" in text


def test_what_is_published_is_readable_and_has_no_two_names_that_differ_in_case(
    made, out, tmp_path
):
    release(ReleaseSettings(name="tiny"), made.candidate, str(made.store), out)
    (out / MANIFEST).write_text("{}")
    (out / "model.safetensors").chmod(0o600)
    gate = GateDecision.model_validate_json((out / "gate.json").read_bytes())
    passed = gate.model_copy(update={"released": True})
    (out / "gate.json").write_text(passed.model_dump_json())

    publish(out, tmp_path / "hub")

    files = [path for path in (tmp_path / "hub").rglob("*") if path.is_file()]
    names = [str(path.relative_to(tmp_path / "hub")) for path in files]
    assert {"README.md", "config.json", "manifest.json", "model.safetensors"} < {*names}
    assert len(names) == len({name.lower() for name in names})
    assert {0o644} == {path.stat().st_mode & 0o777 for path in files}
    with pytest.raises(SettingsError, match="has files; name a new folder"):
        publish(out, tmp_path / "hub")
    (out / "gate.json").write_text(gate.model_copy(update={"released": False}).model_dump_json())
    with pytest.raises(SettingsError, match="did not pass its gate"):
        publish(out, tmp_path / "other")


def test_the_hub_reads_the_evaluation_results(made, out):
    release(ReleaseSettings(name="tiny"), made.candidate, str(made.store), out)
    text = (out / ".eval_results" / "held_out.yaml").read_text()
    entries = parse_eval_result_entries(yaml.safe_load(text))

    assert [
        ("tiny/held-out", "all", 50.0),
        ("tiny/held-out", "domain-maths", 60.0),
        ("tiny/held-out", "language-th", 50.0),
    ] == [(entry.dataset_id, entry.task_id, entry.value) for entry in entries]
    assert "interval 46.0 to 56.0" in entries[0].notes


def test_the_card_shows_the_differences_from_the_base_and_the_released_model(made, out):
    compared = tuple(
        Comparison(suite=suite, parent=name, difference=0.02, low=-0.1, high=0.1, problems=60)
        for name in ("base", "merged", "models:/tiny/3")
        for suite in ("all", "language:th")
    )
    decision = gate(released=True).model_copy(update={"comparisons": compared})
    release(ReleaseSettings(), replace(made.candidate, decision=decision), str(made.store), out)
    card = (out / "README.md").read_text()

    assert "| base | language:th | 60 | +2.0 | -10.0 to +10.0 |" in card
    assert "| models:/tiny/3 | all | 60 | +2.0 | -10.0 to +10.0 |" in card
    assert "| merged | all | 60" not in card


def test_the_card_shows_scores_origins_and_limits(made, out):
    release(ReleaseSettings(), made.candidate, str(made.store), out)
    card = (out / "README.md").read_text()

    assert "| model | all | maths |\n| --- | --- | --- |\n" in card
    assert "| base | 30.0 (26.0 to 36.0) | 40.0 (36.0 to 46.0) |" in card
    assert "| rl/two | 50.0 (46.0 to 56.0) | 60.0 (56.0 to 66.0) |" in card
    assert f"| rl/two | `{made.rl[:12]}` | `{'c' * 12}` | rows 3 |" in card
    assert "| `mbpp.jsonl@r2` | `r2` |" in card
    assert "- It fails 50 % of the samples of its own held-out tasks; 2 of 240 could not" in card
    assert "- 60 held-out problems are few" in card
    assert "- Against merged it lost 2.0 points on maths." in card


def test_a_checkpoint_that_was_not_evaluated_is_refused(made, out):
    for progression in ([], list(made.candidate.progression)[:1]):
        with pytest.raises(DataError, match="Evaluate the candidate and put it last"):
            release(
                ReleaseSettings(),
                replace(made.candidate, progression=progression),
                str(made.store),
                out,
            )


def test_a_checkpoint_outside_its_own_chain_is_refused(made, out):
    foreign = made.candidate.checkpoint.model_copy(update={"statement": made.ingest})

    with pytest.raises(DataError, match="is not in its own chain"):
        release(
            ReleaseSettings(), replace(made.candidate, checkpoint=foreign), str(made.store), out
        )


def test_a_damaged_statement_stops_the_release(made, out):
    path = made.store / "statements" / f"{made.ingest}.json"
    path.write_bytes(path.read_bytes() + b" ")

    with pytest.raises(TamperError, match=made.ingest):
        release(ReleaseSettings(), made.candidate, str(made.store), out)


def test_the_card_says_what_answers_without_a_model_solve(made):
    lookup = Baseline(name="lookup", accuracy={"all": 0.125})
    *before, last = made.candidate.progression
    manifest = ReleaseManifest(
        name="tiny",
        version="v",
        checkpoint="c",
        statements=(),
        objects=(),
        raw_files={},
        gate=gate(released=True),
    )

    card = model_card(manifest, [*before, last.model_copy(update={"baselines": (lookup,)})], {})

    assert "| no model: lookup | 12.5 |" in card
    assert "the most frequent answer behind one word of the prompt" in card


def test_file_names_are_shown_and_not_rendered(made):
    names = ["<script>alert(1)</script>.jsonl", "a|b`c\n# heading"]
    manifest = ReleaseManifest(
        name="tiny",
        version="v",
        checkpoint="c",
        statements=(),
        objects=(),
        raw_files=dict.fromkeys(names, "r1"),
        gate=gate(released=True),
    )
    html = (
        MarkdownIt("commonmark")
        .enable("table")
        .render(model_card(manifest, made.candidate.progression, {}).partition("---\n")[2])
    )

    assert "&lt;script&gt;alert(1)&lt;/script&gt;.jsonl" in html
    assert "<script>" not in html
    assert "a|b'c?# heading" in html
