"""Compare the two verifiers of final answers on graded responses.

pyflyte run workflows/agreement.py agreement --file graded.jsonl
"""

from data_schemas.machine_settings import Whole
from tasks.platform.entry_point import entry_point
from tasks.stages.evaluation import agreement as compare_verifiers


@entry_point
def agreement(file: str, out: str = "agreement.csv", show: Whole = 20) -> str:
    """Score every response with final_answer and with rule_answer; print where they differ.

    Columns are recognised by name: gold (or answer, value), response (or solution, pred) and, if
    there are recorded verdicts, label (or verdict, is_correct, expected). So the graded files of
    Qwen2.5-Math, math-verify and GSM8K are read as they are.

    Args:
        file: JSON lines or parquet; a path or s3:// address.
        out: CSV to write, with every response and both verdicts.
        show: how many disputed responses to print side by side.

    Returns:
        Where the CSV is.
    """
    return compare_verifiers(file=file, out=out, show=show)
