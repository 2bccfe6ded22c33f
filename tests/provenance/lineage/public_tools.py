"""What securesystemslib and in-toto say about a statement. Runs in the environment of the tools.

python public_tools.py STATEMENT PUBLIC_KEY
"""

import json
import sys
from pathlib import Path

from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def main(statement: Path, key: Path) -> None:
    """Verify the envelope with the key, then the shape of its payload."""
    content = json.loads(statement.read_bytes())
    (signature,) = content["signatures"]
    public = {"public": key.read_text()}
    known = SSlibKey(signature["keyid"], "ecdsa", "ecdsa-sha2-nistp256", public)
    envelope = Envelope.from_dict(content)
    envelope.verify([known], 1)
    payload = json.loads(envelope.payload)
    ParseDict(payload, statement_pb2.Statement())
    Statement.copy_from_pb(ParseDict(payload, statement_pb2.Statement())).validate()
    sys.stdout.write("verified\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
