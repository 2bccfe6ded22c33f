"""Asks the checkers of other projects, in an environment of their own.

Run by path with that environment's Python; imports nothing of this project. Reads one JSON request
per line, {"checker", "gold", "response"}, and answers {"accepted", "cpu_s", "error"}. Responses
come without their thinking.
"""

import json
import os
import re
import signal
import sys
import time
import types
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

TIMEOUT_S = 5
_TAGS = re.compile(r"^<tool_call>(.*?)</tool_call>$", re.DOTALL)
_FENCE = re.compile(r"^```\w*\n(.*?)\n?```$", re.DOTALL)


def bfcl(gold: dict[str, Any], response: str) -> bool:
    """Ask BFCL's AST checker; Python calls are read by its own decoder."""
    checker, decode, language = _bfcl()
    text = response.strip()
    fenced = _FENCE.match(text) or _TAGS.match(text)
    text = fenced[1] if fenced else text
    try:
        if text.lstrip().startswith("{"):
            rows = [json.loads(line) for line in text.strip().splitlines()]
            made = [{row["name"]: row["parameters"]} for row in rows]
        else:
            made = decode(text)
    except Exception:  # noqa: BLE001 - as its own runner does: what cannot be read is wrong
        return False
    allowed = [{call["name"]: call["parameters"]} for call in gold["calls"]]
    kind = "parallel" if len(allowed) > 1 else "multiple"
    return bool(checker(gold["functions"], made, allowed, language, kind, "any")["valid"])


def minerva(gold: dict[str, Any], response: str) -> bool:
    """Compare the last box as lm-evaluation-harness does for Minerva's MATH."""
    maths = import_module("lm_eval.tasks.minerva_math.utils")
    found = maths.last_boxed_only_string(response)
    if found is None:
        return False
    said = maths.normalize_final_answer(maths.remove_boxed(found))
    return bool(maths.is_equiv(said, maths.normalize_final_answer(gold["value"])))


def prime_math(gold: dict[str, Any], response: str) -> bool:
    """Ask verl's copy of PRIME's grader: PRM800K's, then that of the Qwen2.5-Math family."""
    return bool(_prime_math().compute_score(response, gold["value"])[0])


def opencompass(gold: dict[str, Any], response: str) -> bool:
    """Ask OpenCompass's MATHEvaluator, version 2, on what its own postprocessor extracts."""
    maths = _opencompass()
    evaluator = maths.MATHEvaluator(version="v2")
    return bool(evaluator.is_equiv(maths.math_postprocess_v2(response), gold["value"]))


def qwen_math(gold: dict[str, Any], response: str) -> bool:
    """Ask the evaluation of Qwen2.5-Math: its extraction, and math_equal."""
    parser, grader = _qwen_math()
    said = parser.extract_answer(response, "math")
    return bool(grader.math_equal(said, parser.strip_string(gold["value"])))


def ifeval(gold: dict[str, Any], response: str) -> bool:
    """Ask lm-evaluation-harness's IFEval, strict."""
    table = import_module("lm_eval.tasks.ifeval.instructions_registry").INSTRUCTION_DICT
    followed = []
    for name, arguments in zip(gold["instruction_id_list"], gold["kwargs"], strict=True):
        instruction = table[name](name)
        instruction.build_description(**{k: v for k, v in arguments.items() if v})
        followed.append(bool(response.strip()) and instruction.check_following(response))
    return all(followed)


CHECKERS: dict[str, Callable[[dict[str, Any], str], bool]] = {
    "bfcl_eval": bfcl,
    "lm_eval minerva": minerva,
    "lm_eval ifeval": ifeval,
    "verl prime_math": prime_math,
    "opencompass": opencompass,
    "qwen2.5-math": qwen_math,
}
MODULES = {
    "bfcl_eval": "bfcl_eval",
    "lm_eval minerva": "lm_eval.tasks.minerva_math.utils",
    "lm_eval ifeval": "lm_eval.tasks.ifeval.instructions_registry",
    "verl prime_math": "pylatexenc",
    "opencompass": "sympy",
    "qwen2.5-math": "latex2sympy2",
}


@lru_cache
def _bfcl() -> tuple[Any, Any, Any]:
    # Its table of models imports every vendor's SDK; only one flag of one entry is read from it.
    models = types.ModuleType("bfcl_eval.constants.model_config")
    entry = types.SimpleNamespace(underscore_to_dot=False)
    vars(models)["MODEL_CONFIG_MAPPING"] = {"any": entry}
    sys.modules.setdefault("bfcl_eval.constants.model_config", models)
    checker = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    decode = import_module("bfcl_eval.model_handler.utils").default_decode_ast_prompting
    return checker, decode, import_module("bfcl_eval.constants.enums").Language.PYTHON


@lru_cache
def _prime_math() -> Any:
    # The packages above it import torch and ray, of which nothing is used.
    _hollow("verl", "verl.utils", "verl.utils.reward_score")
    limits = types.ModuleType("verl.utils.py_functional")
    vars(limits)["timeout_limit"] = lambda **_: lambda function: function
    sys.modules.setdefault("verl.utils.py_functional", limits)
    return import_module("verl.utils.reward_score.prime_math")


@lru_cache
def _opencompass() -> Any:
    # Its registry and base classes import mmengine and datasets; they register, and read files.
    _hollow("opencompass", "opencompass.datasets")
    register = types.SimpleNamespace(register_module=lambda *_, **__: lambda kept: kept)
    names = ("ICL_EVALUATORS", "LOAD_DATASET", "TEXT_POSTPROCESSORS")
    base = type("Base", (), {"__init__": lambda self, **_: None})
    for module, names_in_it in {
        "opencompass.registry": dict.fromkeys(names, register),
        "opencompass.openicl": {},
        "opencompass.openicl.icl_evaluator": {"BaseEvaluator": base},
        "opencompass.utils": {"get_data_path": str},
        "opencompass.datasets.base": {"BaseDataset": base},
        "datasets": {"Dataset": base, "DatasetDict": base},
    }.items():
        stub = types.ModuleType(module)
        vars(stub).update(names_in_it)
        sys.modules.setdefault(module, stub)
    return import_module("opencompass.datasets.math")


@lru_cache
def _qwen_math() -> Any:
    # No package: QWEN_MATH is the folder `evaluation` of a clone of github.com/QwenLM/Qwen2.5-Math.
    sys.path.insert(0, os.environ["QWEN_MATH"])
    return import_module("parser"), import_module("grader")


def _hollow(*packages: str) -> None:
    """Stand in for packages whose modules are found on disk, without running their `__init__`."""
    for name in packages:
        package = types.ModuleType(name)
        parent, _, last = name.rpartition(".")
        roots = sys.modules[parent].__path__ if parent else sys.path
        package.__path__ = [f"{root}/{last}" for root in roots]
        sys.modules.setdefault(name, package)


def _installed() -> list[str]:
    found = []
    for name, module in MODULES.items():
        try:
            import_module(module)
            if name in _SETUPS:
                _SETUPS[name]()
        except (ImportError, LookupError, OSError) as error:
            sys.stderr.write(f"{name}: {error}\n")
        else:
            found.append(name)
    return found


_SETUPS: dict[str, Callable[[], Any]] = {
    "bfcl_eval": _bfcl,
    "verl prime_math": _prime_math,
    "opencompass": _opencompass,
    "qwen2.5-math": _qwen_math,
}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    start = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    accepted, error = None, ""
    try:
        accepted = CHECKERS[request["checker"]](request["gold"], request["response"])
    except Exception as raised:  # noqa: BLE001 - the boundary: whatever a checker raises, it refuses
        error = f"{type(raised).__name__}: {raised}"[:200]
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"accepted": accepted, "cpu_s": time.process_time() - start, "error": error}


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no verdict in {TIMEOUT_S} s")


def main() -> None:
    """Name the checkers that can be asked, then answer requests until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what checkers print is no answer
    signal.signal(signal.SIGALRM, _too_long)
    answers.write(json.dumps(_installed()) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
