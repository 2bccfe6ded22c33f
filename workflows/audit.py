"""Prove a model or any other artifact, back to the raw files.

pyflyte run workflows/audit.py audit --model models:/eachprompt-tiny@released

A release that was published proves itself: --folder names what `eachprompt publish` wrote, or a
download of it, and neither its store nor MLflow is needed.

With --key PUBLIC_KEY it also proves who recorded it; without, only that nothing changed since.

Exit codes: 0 = proved; 1 = something differs from the record, or a store or MLflow did not answer;
2 = there is no such model, store or key.
"""

from tasks.platform.entry_point import entry_point
from tasks.stages.audit import audit as audit_model


@entry_point
def audit(
    model: str = "models:/eachprompt-tiny@released",
    store: str = "runs",
    format: str = "text",
    key: str = "",
    folder: str = "",
) -> str:
    """Re-hash everything a model rests on, print the chain and draw it; fail if anything differs.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/VERSION'; digest of an artifact or a
            statement (12 digits or more); or folder or s3:// prefix of an artifact, also of a copy.
        store: folder or s3:// prefix the artifacts lie in.
        format: of what is printed: 'text', 'json' for the report as one line; 'annex-iv' or
            'training-summary' for a paper of the EU AI Act, or 'aisvs' for OWASP's criteria, in
            Markdown, blanks named, and as a page that a browser prints or saves as PDF.
        key: file with public keys in PEM, one of which must have signed every statement; with a
            certificate of a time stamp service, the promotion must have its stamp.
        folder: of a published release, instead of a model and its store.

    Returns:
        The picture of the chain or the page of a paper, one HTML file; '' if the store cannot be
        written.
    """
    return audit_model(model=model, store=store, format=format, key=key, folder=folder)
