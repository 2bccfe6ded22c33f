"""Which rows made a model, what a row touched, what two models differ in, what has to be forgotten.

pyflyte run workflows/lineage.py trace --model models:/eachprompt-tiny@released
pyflyte run workflows/lineage.py compare --before models:/NAME/1 --after models:/NAME/2
pyflyte run workflows/lineage.py forget --rows withdrawn.txt
"""

from data_schemas.machine_settings import Whole
from tasks.platform.entry_point import entry_point
from tasks.stages.rows import compare_models
from tasks.stages.rows import forget as withdraw
from tasks.stages.rows import trace as follow


@entry_point
def trace(
    model: str = "",
    row: str = "",
    file: str = "",
    source: str = "",
    verifier: str = "",
    judge: str = "",
    store: str = "runs",
    show: Whole = 10,
    format: str = "text",
) -> str:
    """Print every row that trained a model, or every checkpoint and release that rows touched.

    Give one of the first six; none asks for models:/eachprompt-tiny@released.

    Args:
        model: 'models:/NAME@released', 'models:/NAME/VERSION', or a checkpoint's digest.
        row: sha256 of a raw row, or its text, or a part of a prompt or response.
        file: raw file, by path or sha256.
        source: adapter that read the rows.
        verifier: its name, also with the digest of its code: 'final_answer@1a2b3c4d'.
        judge: its kind, model or address.
        store: folder or s3:// prefix the artifacts lie in.
        show: rows to print; a file has all rows of a model.
        format: of what is printed: 'text', or 'json' for the answer as one line.

    Returns:
        CSV with all rows of a model, in the store's traces/; '' for other questions.
    """
    return follow(
        model=model,
        row=row,
        file=file,
        source=source,
        verifier=verifier,
        judge=judge,
        store=store,
        show=show,
        format=format,
    )


@entry_point
def compare(before: str, after: str, store: str = "runs", format: str = "text") -> str:
    """Print what two models differ in: rows, raw files, code, settings, rewards, evaluation.

    Args:
        before: 'models:/NAME/VERSION', 'models:/NAME@previous', or a checkpoint's digest.
        after: as before.
        store: folder or s3:// prefix the artifacts lie in.
        format: of what is printed: 'text', or 'json' for the answer as one line.

    Returns:
        CSV with all rows that were added, removed or used to another extent.
    """
    return compare_models(before=before, after=after, store=store, format=format)


@entry_point
def forget(rows: str, store: str = "runs", show: Whole = 10, format: str = "text") -> str:
    """Print which releases must go because rows are withdrawn, and how to train without them.

    Writes the exclusion list and, for every release, the settings of a training on all its other
    rows. The nights of retraining that follow such a release leave the rows out as well.

    Args:
        rows: file that names one row per line: by sha256, as it stands in its file, or by a part of
            its prompt or response.
        store: folder or s3:// prefix the artifacts lie in.
        show: rows to print.
        format: of what is printed: 'text', or 'json' for the answer as one line.

    Returns:
        The exclusion list.
    """
    return withdraw(rows=rows, store=store, show=show, format=format)
