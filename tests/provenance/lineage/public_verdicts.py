"""What public verifiers say about envelopes. Runs in the environment of the tools.

python public_verdicts.py dsse FOLDER PUBLIC_KEY
python public_verdicts.py model-signing FOLDER PUBLIC_KEY MODEL

prints, for every file of the folder in order, 1 if it is accepted and 0 if it is not.
"""

import json
import sys
from pathlib import Path

from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

TYPE = "application/vnd.in-toto+json"


def accepts(file: Path, key: Path, keyid: str) -> bool:
    """Verify an envelope with securesystemslib, and look at its type as in-toto does."""
    envelope = Envelope.from_dict(json.loads(file.read_bytes()))
    public = SSlibKey(keyid, "ecdsa", "ecdsa-sha2-nistp256", {"public": key.read_text()})
    envelope.verify([public], 1)
    return envelope.payload_type == TYPE


def accepts_model(file: Path, key: Path, model: Path) -> bool:
    """Verify a model's files with model-signing."""
    from model_signing import verifying

    verifying.Config().use_elliptic_key_verifier(public_key=key).verify(model, file)
    return True


def main(kind: str, folder: Path, key: Path, last: str) -> None:
    """Print the verdicts."""
    for file in sorted(folder.iterdir()):
        try:
            accepted = (
                accepts(file, key, last) if kind == "dsse" else accepts_model(file, key, Path(last))
            )
        except Exception as error:  # noqa: BLE001 - boundary: each tool refuses with errors of its own
            sys.stderr.write(f"{file.name}: {type(error).__name__}: {error}\n")
            accepted = False
        sys.stdout.write(str(int(accepted)))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
