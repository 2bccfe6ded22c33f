"""What people decide about files that a night held: yes or no, by whom and why, signed.

    eachprompt approve drop.csv --by ann --because "the shop renamed its columns"
    eachprompt reject drop.csv --by ann --because "a test export"

An approved file is read again in the next night, whatever it was held for; a rejected one never.
Both are about the content: a file that was renamed meanwhile, or that comes again under another
name, keeps its ruling. The ruling is a stage with a statement, from which the rows of an approved
file descend.
"""

import shlex
import time
import uuid
from collections.abc import Sequence

from data_schemas.artifacts import Context, DatasetRef, Execution, StoreRef
from data_schemas.intake import FileStatus, ProcessedFiles, Ruling, SignedRuling
from tasks.errors import SettingsError
from tasks.platform.cache_version import shell_digest
from tasks.provenance.lineage.shipping import begin
from tasks.provenance.lineage.stage import stage
from tasks.retraining import processed
from tasks.store.files import canonical_json, write_bytes

ROLE = "ruling"
"""Role of the record, among the inputs of an intake."""
_FILE = "ruling.json"
_OPEN = (FileStatus.HELD, FileStatus.APPROVED, FileStatus.REJECTED)
"""What may be decided, and decided again before the file is read."""
_WORDS = {FileStatus.APPROVED: "approve", FileStatus.REJECTED: "reject"}


def rule(
    store: StoreRef, inbox: str, keys: Sequence[str], status: FileStatus, *, by: str, because: str
) -> Ruling:
    """Record what somebody decided about held files of an inbox.

    Args:
        store: of the nights.
        inbox: folder or s3:// prefix, as the nights name it.
        keys: of the files, as the page of the night names them.
        status: approved or rejected.
        by: who decided it.
        because: why.

    Raises:
        SettingsError: one of them is not held, or nobody or no reason is named.
    """
    for option, text in (("--by", by), ("--because", because)):
        if not text.strip():
            raise SettingsError(f"{option} is empty; who decides and why is what is recorded")
    word, when = _WORDS[status], time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(when))
    execution = Execution(id=f"{stamp}-{uuid.uuid4().hex[:6]}", started=when, workflow=word)
    with processed.change(store.uri, inbox, execution.id) as (before, write):
        files = {key: _content_of_held(before, inbox, key) for key in keys}
        ruling = Ruling(inbox=inbox, files=files, status=status, by=by, because=because)
        begin(Context(store, execution))
        code = shell_digest(__name__, rule.__name__)
        with stage(word, ruling, Context(store, execution), code) as record:
            with record.output(ROLE) as out:
                write_bytes(out / _FILE, canonical_json(ruling))
            record.facts({"by": by, "because": because, "files": len(files)})
            ruled = SignedRuling(ruling=ruling, record=record.ref(ROLE, DatasetRef))
        decided = set(files.values())
        after = tuple(
            one.model_copy(update={"status": status})
            if one.content in decided and one.status in _OPEN
            else one
            for one in before.files
        )
        write(ProcessedFiles(files=after, rulings=(*before.rulings, ruled)))
    return ruling


def _content_of_held(record: ProcessedFiles, inbox: str, key: str) -> str:
    contents = {one.key: one.content for one in record.files if one.status in _OPEN and one.content}
    if key not in contents:
        raise SettingsError(
            f"{key} is not held in {inbox}; held files: {', '.join(sorted(contents)) or 'none'}"
        )
    return contents[key]


def question(keys: Sequence[str], inbox: str, store: str) -> str:
    """Say how people answer for held files; '' if there is none."""
    if not keys:
        return ""
    options = shlex.join([*keys, "--inbox", inbox, "--store", store])
    return (
        f' Say yes or no: eachprompt approve {options} --by NAME --because "...", or eachprompt '
        "reject with the same options."
    )
