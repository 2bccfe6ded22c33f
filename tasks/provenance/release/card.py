"""The model card: description, evaluation, provenance and limits."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from data_schemas.reports import (
    ABOUT_BASELINES,
    ABOUT_MERGED,
    Baseline,
    EvaluationReport,
    MeasuredRate,
    ReleaseManifest,
    SuiteScore,
)
from data_schemas.samples import RequestKind
from data_schemas.sources import RawFile
from data_schemas.statements import Statement
from tasks.algorithms.floors import at_floor, floor_sentence
from tasks.algorithms.slices import MIN_PROBLEMS
from tasks.formats.licences import licence_of, responsible_for
from tasks.gym.error_rates import NOT_MEASURED
from tasks.models import chat_trial
from tasks.provenance.release.gate import ALL, MERGED

_METHODS = {
    "sft": "supervised-fine-tuning",
    "merge": "merge",
    "rl": "reinforcement-learning",
}
"""First word of a stage's name -> tag of the card."""
_BASE = "base"
_SHOWN_FACTS = 6
_HUB_COPY = re.compile(r"(?:^|/)hf/([^/]+/[^/]+)/[0-9a-f]{40}/")
"""Where copies of the hub's data sets lie: hf/OWNER/NAME/COMMIT."""
VERIFY = """    eachprompt audit --folder . --key provenance/keys.pem
    python -m model_signing verify key . --signature provenance/model.sig \\
        --public_key provenance/keys.pem"""
"""Run by the tests in a folder that is not the store's."""
NO_RAW_FILES: Mapping[str, RawFile] = {}
_SMALL = 100
"""With fewer held-out problems, the card warns about wide intervals."""


def model_card(
    manifest: ReleaseManifest,
    progression: Sequence[EvaluationReport],
    chain: Mapping[str, Statement],
    license: str = "",
    base: str = "",
    folder: Path | None = None,
    raw: Mapping[str, RawFile] = NO_RAW_FILES,
) -> str:
    """Write the card in Markdown with the front matter of the Hugging Face hub.

    Args:
        manifest: of the release.
        progression: every evaluated model in training order, the candidate last.
        chain: statements by digest, producers first.
        license: that the card of the base model names; '' = none.
        base: name of the base model on the hub; '' = it has none.
        folder: of the released files, whose chat template decides how they are served.
        raw: what the lists of the chain say of its raw files, by their names in the manifest.
    """
    front = yaml.safe_dump(
        _front_matter(manifest, progression, chain, base) | {"license": license or "unknown"},
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )
    released = manifest.gate.released
    parts = [
        f"---\n{front}---",
        f"# {manifest.name} {manifest.version}",
        _introduction(manifest),
        *([] if released else [_reasons(manifest)]),  # MLflow cuts a description at its end
        f"## Use\n\n{usage(manifest.name, folder)}",
        f"## Evaluation\n\n{_progression(progression)}\n\n{_progression_note(progression)}",
        f"### Against the base and the released model\n\n{_differences(manifest)}",
        *([_reasons(manifest)] if released else []),
        f"## Provenance\n\n{_made_of(chain)}",
        f"### Train-inference mismatch\n\n{_mismatch(manifest)}",
        f"### Verifiers\n\n{_verifiers(manifest)}",
        f"### Raw files\n\n{_raw_files(manifest, raw)}",
        f"## Limits\n\n{_listed(limits(manifest, progression))}",
        f"## Verification\n\n{_how_to_check(manifest)}",
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _reasons(manifest: ReleaseManifest) -> str:
    """List the rules of the gate, those that failed first."""
    gate = manifest.gate
    ordered = sorted(gate.reasons, key=lambda reason: reason.startswith("passed"))
    passed = "Why it may be released, once approved" if gate.awaits else "Why it was released"
    title = passed if gate.released else "Why it was not released"
    return f"## {title}\n\n" + "\n".join(f"- {reason}" for reason in ordered)


def _front_matter(
    manifest: ReleaseManifest,
    progression: Sequence[EvaluationReport],
    chain: Mapping[str, Statement],
    base: str,
) -> dict[str, Any]:
    candidate = progression[-1]
    stages = {statement.stage.split("/")[0] for statement in chain.values()}
    results = [
        {
            "task": {"type": "text-generation", "name": "Text generation"},
            "dataset": {"type": "held-out", "name": f"held-out, {suite.suite}"},
            "metrics": [
                {
                    "type": "accuracy",
                    "name": f"accuracy, mean of {suite.samples} samples",
                    "value": round(suite.accuracy, 4),
                },
                {
                    "type": "pass@k",
                    "name": f"pass@{suite.samples}",
                    "value": round(suite.pass_at_k, 4),
                },
            ],
        }
        for suite in candidate.suites
        if (suite.suite == ALL or suite.suite.startswith("domain:"))
        and suite.suite not in _uncounted(candidate)
    ]
    languages = [
        suite.suite.removeprefix("language:")
        for suite in candidate.suites
        if suite.suite.startswith("language:")
    ]
    card: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        # An id that the hub cannot resolve is an error on the model's page: only known ones.
        **({"base_model": base, "base_model_relation": "finetune"} if base else {}),
        **({"datasets": datasets} if (datasets := _datasets(manifest)) else {}),
        "tags": ["reasoning", *(tag for stage, tag in _METHODS.items() if stage in stages)],
        "model-index": [{"name": manifest.name, "results": results}],
    }
    if languages:
        card = {"language": languages, **card}
    return card


def eval_results(manifest: ReleaseManifest, candidate: EvaluationReport) -> bytes:
    """Write the scores as the hub reads them in `.eval_results/*.yaml`."""
    entries = [
        {
            "dataset": {
                "id": f"{manifest.name}/held-out",
                "task_id": suite.suite.replace(":", "-"),
                "revision": manifest.version,
            },
            "value": round(100 * suite.accuracy, 2),
            "notes": f"accuracy in percent, mean of {suite.samples} samples on {suite.problems} "
            f"held-out problems, interval {100 * suite.low:.1f} to {100 * suite.high:.1f}",
        }
        for suite in candidate.suites
        if suite.problems and suite.suite not in _uncounted(candidate)
    ]
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=100).encode()


def _uncounted(candidate: EvaluationReport) -> set[str]:
    """Name the families at their floors, and with them the whole."""
    floors = {echo.suite for echo in at_floor(candidate)}
    return {*floors, ALL} if floors else floors


def _differences(manifest: ReleaseManifest) -> str:
    """Paired differences per slice; the gate's rules say which of them count."""
    names = {one.parent for one in manifest.gate.comparisons}
    parents = [name for name in names if name == _BASE or name.startswith("models:/")]
    parents += ["released"] if "released" in names else []
    lines = [
        "| against | suite | problems | points | interval |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.parent} | {one.suite} | {one.problems} | {100 * one.difference:+.1f} "
        f"| {100 * one.low:+.1f} to {100 * one.high:+.1f} |"
        for one in manifest.gate.comparisons
        if one.parent in parents
    ]
    return "\n".join(lines) if parents else "Neither was among the models compared."


def _datasets(manifest: ReleaseManifest) -> list[str]:
    """Return the data sets of the hub among the raw files; the card lists all files below."""
    results = (_HUB_COPY.search(uri) for uri in manifest.raw_files)
    return sorted({match[1] for match in results if match})


def usage(name: str, folder: Path | None = None) -> str:
    """Write how to load the folder of the card in transformers and in vLLM.

    The parsers are those under which the model was rewarded: what they lose earned nothing.
    """
    options, notes = "", list[str]()
    if folder is not None and chat_trial.separates_thoughts(folder):
        options += " \\\n        --reasoning-parser deepseek_r1"
        notes.append(
            "The answer is what follows the first `</think>`; the server returns what precedes it "
            "as `reasoning`, and a response without that tag as `reasoning` only. Calls that are "
            "thought of are not made, as the parser `qwen3` would make them."
        )
    form = chat_trial.call_form(folder) if folder is not None else ""
    if form:
        options += f" \\\n        --enable-auto-tool-choice --tool-call-parser {form}"
    else:
        notes.append(
            "The chat template writes no calls of functions in a form that a server's parser "
            "reads: a call is text, as the prompt asks for."
        )
    command = "python -m vllm.entrypoints.openai.api_server --model . --served-model-name"
    rest = "\n\n" + " ".join(notes) if notes else ""
    return f"""```python
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "."  # the folder of this file
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder)
messages = [{{"role": "user", "content": "What is 3 + 4?"}}]
prompt = tokenizer.apply_chat_template(
    messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
)
answer = model.generate(**prompt, max_new_tokens=64)
print(tokenizer.decode(answer[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True))
```

    {command} {name}{options}{rest}"""


def _introduction(manifest: ReleaseManifest) -> str:
    state = "passed" if manifest.gate.released else "did not pass"
    return (
        "A reasoning model, made by the stages listed below on verifiable tasks. It answers as "
        f"`<think>...</think>answer`. It {state} the release gate.\n\n"
        f"Checkpoint digest: `{manifest.checkpoint}`"
    )


def _progression(progression: Sequence[EvaluationReport]) -> str:
    """One row per model, one column per domain; accuracy in percent with its interval."""
    names = [
        suite.suite
        for suite in progression[-1].suites
        if suite.suite == ALL or suite.suite.startswith("domain:")
    ]
    names.sort(key=lambda name: (name != ALL, name))
    head = ["model", *(name.removeprefix("domain:") for name in names)]
    rows = [[report.model, *(_cell(report, name) for name in names)] for report in progression]
    rows += [
        [f"no model: {one.name}", *(_baseline_cell(one, name) for name in names)]
        for one in progression[-1].baselines
    ]
    return "\n".join(
        "| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]
    )


def _cell(report: EvaluationReport, name: str) -> str:
    suite = _suite(report, name)
    if suite is None:
        return "-"
    return f"{100 * suite.accuracy:.1f} ({100 * suite.low:.1f} to {100 * suite.high:.1f})"


def _baseline_cell(baseline: Baseline, name: str) -> str:
    accuracy = baseline.accuracy.get(name)
    return "-" if accuracy is None else f"{100 * accuracy:.1f}"


def _progression_note(progression: Sequence[EvaluationReport]) -> str:
    overall = _suite(progression[-1], ALL)
    problems = f"{overall.problems} held-out problems" if overall else "the held-out problems"
    samples = f"{overall.samples} samples each" if overall else "the same samples"
    return (
        f"Accuracy in percent on {problems}, {samples}, with bootstrap intervals over problems. "
        "Curation held these problems out of training."
        + f" {ABOUT_MERGED}" * any(one.model == MERGED for one in progression)
        + f" {ABOUT_BASELINES}" * bool(progression[-1].baselines)
        + f" {floor_sentence(progression[-1])}".rstrip()
    )


def _made_of(chain: Mapping[str, Statement]) -> str:
    lines = ["| stage | statement | code | facts |", "| --- | --- | --- | --- |"]
    for digest, statement in chain.items():
        facts = [f"{name} {_number(value)}" for name, value in statement.facts.items()]
        excerpt = ", ".join(facts[:_SHOWN_FACTS]) + (", ..." if len(facts) > _SHOWN_FACTS else "")
        code = " ".join(f"`{part[:12]}`" for part in statement.code)
        lines.append(f"| {statement.stage} | `{digest[:12]}` | {code} | {excerpt} |")
    return "\n".join(lines)


def _mismatch(manifest: ReleaseManifest) -> str:
    """The mismatch gate's decisions per phase."""
    head = "| phase | steps | corrected | paused | largest k3 | largest probe (nats) |"
    lines = [head, "| --- | --- | --- | --- | --- | --- |"]
    lines += [
        f"| {phase.stage} | {phase.steps} | {phase.corrected} | {phase.paused} "
        f"| {phase.max_k3:.1e} | {phase.max_probe:.1e} |"
        for phase in manifest.mismatch
    ]
    return "\n".join(lines) if manifest.mismatch else "No RL phase is part of its provenance."


def stated_rate(rate: MeasuredRate | None) -> str:
    """Write an error rate with its interval; what nobody measured is no 0."""
    if rate is None:
        return NOT_MEASURED
    share, low, high = (100 * value for value in (rate.count / rate.of, rate.low, rate.high))
    return f"{share:.2f} % ({low:.2f} to {high:.2f}) of {rate.of}"


def _verifiers(manifest: ReleaseManifest) -> str:
    """Error rates of the verifiers of the problems."""
    examination = manifest.verifiers
    if not examination.rates:
        return "Its problems and their verifiers are not part of its provenance."
    lines = ["| verifier | wrong, but accepted | right, but rejected |", "| --- | --- | --- |"]
    lines += [
        f"| {_code(one.verifier)} | {stated_rate(one.false_positive)} "
        f"| {stated_rate(one.false_negative)} |"
        for one in examination.rates
    ]
    return "\n".join(lines) + (
        "\n\nWith 95 % intervals, on forms of answers that were made to deceive and to which no "
        "reader was tuned, not on responses of this model. Evidence: "
        f"{_code(examination.evidence)}, sha256 `{examination.sha256}`."
    )


def _raw_files(manifest: ReleaseManifest, raw: Mapping[str, RawFile]) -> str:
    lines = ["| file | sha256 | licence | responsible |", "| --- | --- | --- | --- |"]
    for uri, sha256 in manifest.raw_files.items():
        terms = (licence_of(raw[uri]), responsible_for(raw[uri])) if uri in raw else ("", "")
        texts = " | ".join(_code(text) if text else "" for text in terms)
        lines.append(f"| {_code(uri)} | `{sha256}` | {texts} |")
    return "\n".join(lines) if manifest.raw_files else "None."


def limits(manifest: ReleaseManifest, progression: Sequence[EvaluationReport]) -> list[str]:
    """Say in sentences what the model cannot do, and what was not evaluated."""
    candidate = progression[-1]
    lines = []
    if not manifest.gate.released:
        lines.append("It did not pass the release gate. Do not serve it.")
    overall = _suite(candidate, ALL)
    if overall:
        lines.append(
            f"It fails {100 * (1 - overall.accuracy):.0f} % of the samples of its own held-out "
            f"tasks; {overall.abstained} of {overall.problems * overall.samples} could not be "
            "scored and are excluded from the means."
        )
        if overall.problems < _SMALL:
            lines.append(f"{overall.problems} held-out problems are few; the intervals are wide.")
    lines.append(
        f"{candidate.truncated_share:.1%} of its responses were cut off at the length limit of "
        "the evaluation; longer reasoning was not tested."
    )
    lines += [
        f"Against {one.parent} it lost {-100 * one.difference:.1f} points on "
        f"{one.suite.removeprefix('domain:')}."
        for one in manifest.gate.comparisons
        if one.difference < 0 and one.suite.startswith((ALL, "domain:"))
    ]
    if manifest.gate.too_small:
        lines.append(
            f"Slices with fewer than {MIN_PROBLEMS} held-out problems, too few to tell whether one "
            "of them alone lost; the gate judged them together with others of their kind where "
            f"these have as many: {', '.join(map(_code, manifest.gate.too_small))}."
        )
    requests = list(_requests(candidate))
    untested = "Other tasks, other languages, "
    untested += "bias" if requests else "safety, bias"
    lines += requests
    lines.append(
        f"It was evaluated on the kinds of task it was trained on. {untested} and adversarial "
        "prompts were not evaluated."
    )
    return lines


def _requests(candidate: EvaluationReport) -> Iterator[str]:
    """Say how often the candidate refused what it should, and what it should not."""
    for kind, wrong in ((RequestKind.HARMFUL, "complied with"), (RequestKind.HARMLESS, "refused")):
        suites = [one for one in candidate.suites if one.suite.startswith(f"{kind}:")]
        if problems := sum(one.problems for one in suites):
            share = sum(one.problems * (1.0 - one.accuracy) for one in suites) / problems
            yield (
                f"Of {problems} short {kind} requests in {len(suites)} languages it {wrong} "
                f"{100 * share:.0f} %; so few show whether it refuses at all, not how safe it is."
            )


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _how_to_check(manifest: ReleaseManifest) -> str:
    return (
        "`manifest.json` lists every statement, object and raw file by sha256. In the store of the "
        f"release, `eachprompt audit --model models:/{manifest.name}@released` re-hashes all of "
        "them. A folder that `eachprompt publish` wrote, and a download of it, holds what proves "
        "it in `provenance/`. In the folder of this file:\n\n"
        f"{VERIFY}\n\n"
        "The first follows the signed statements of all stages to the files here and says what a "
        "folder leaves open; the second is OpenSSF's verifier of the files alone (`pip install "
        "model-signing pyopenssl`; with `--allow_symlinks` in a cache of the hub). Both prove that "
        "nothing was changed since a key signed it. Whose key that is, only a copy of the public "
        "key tells that reached you by another way than this folder: give it in the place of "
        "`provenance/keys.pem`. Neither proves that the inputs were honest. `bom.cdx.json` says "
        "the same as `manifest.json` in CycloneDX."
    )


def _suite(report: EvaluationReport, name: str) -> SuiteScore | None:
    return next((suite for suite in report.suites if suite.suite == name), None)


def _code(name: str) -> str:
    """Quote a name from outside, so that a page shows its characters and renders none of them."""
    printable = "".join(character if character.isprintable() else "?" for character in name)
    return f"`{printable.replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def _number(value: float | int | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:60]
