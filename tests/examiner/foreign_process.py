"""Asks the checkers of other projects, in an environment of their own.

Run by path with that environment's Python; imports nothing of this project. Reads one JSON request
per line, {"checker", "gold", "response"}, and answers {"accepted", "cpu_s", "error"}. Responses
come without their thinking.
"""

import json
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
}
MODULES = {
    "bfcl_eval": "bfcl_eval",
    "lm_eval minerva": "lm_eval.tasks.minerva_math.utils",
    "lm_eval ifeval": "lm_eval.tasks.ifeval.instructions_registry",
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


def _installed() -> list[str]:
    found = []
    for name, module in MODULES.items():
        try:
            import_module(module)
            if name == "bfcl_eval":
                _bfcl()
        except (ImportError, LookupError, OSError) as error:
            sys.stderr.write(f"{name}: {error}\n")
        else:
            found.append(name)
    return found


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
