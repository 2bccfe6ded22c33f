"""When a promotion existed, by the word of a time stamp service that the auditor knows."""

from collections.abc import Sequence

from cryptography.x509 import Certificate

from tasks.errors import DataError
from tasks.provenance.audit.evidence import Evidence
from tasks.provenance.audit.reading import read_record
from tasks.provenance.audit.target import Target
from tasks.provenance.lineage.promotions import NUMBER
from tasks.provenance.lineage.signatures.time_stamps import read_stamp, stamp_uri


def check_stamp(target: Target, evidence: Evidence, authorities: Sequence[Certificate]) -> str:
    """Return when a promotion was stamped and by whom; a finding if it was not.

    Args:
        target: that is audited. '' is returned if it is no promotion.
        evidence: receives the finding.
        authorities: certificates of services; without any, no time is read.
    """
    statement = evidence.statements.get(target.statement)
    if not authorities or statement is None or NUMBER not in statement.facts:
        return ""
    where = stamp_uri(evidence.store, target.statement)
    try:
        stamp = read_stamp(read_record(where), target.statement, authorities)
    except DataError as error:
        evidence.add(target.statement, where, str(error))
        return ""
    return f"{stamp.time:%Y-%m-%d %H:%M:%S} UTC by {stamp.authority}"
