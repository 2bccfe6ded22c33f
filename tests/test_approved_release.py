"""A whole run whose settings ask for a second person: released by another key, and proved so."""

import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tasks.provenance.lineage.signatures.dsse import fingerprint, public_pem, signer_of
from tests import tiny_chain
from tests.processes import run_process

NAMES = ("run", "ann")


def write_keys(folder: Path) -> dict[str, str]:
    """Write a key file each, and one of both public halves; return their fingerprints."""
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in NAMES}
    for name, key in keys.items():
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (folder / f"{name}.pem").write_bytes(pem)
    trusted = b"".join(public_pem(key.public_key()) for key in keys.values())
    (folder / "keys.pub").write_bytes(trusted)
    return {name: fingerprint(signer_of(key).public) for name, key in keys.items()}


def eachprompt(folder: Path, key: str, *arguments: str) -> tuple[int, str]:
    """Run the command with somebody's key; return its status and what it says, in one line."""
    done = run_process(
        [Path(sys.executable).with_name("eachprompt"), *arguments],
        cwd=folder,
        variables={
            "HOME": str(folder),
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "EACHPROMPT_SIGNING_KEY": str(folder / f"{key}.pem"),
            "EACHPROMPT_TRUSTED_KEYS": str(folder / "keys.pub"),
        },
        check=False,
    )
    return done.returncode, " ".join(f"{done.stdout} {done.stderr}".split())


@pytest.mark.slow
def test_a_run_that_waits_for_another_key_is_released_by_it_and_the_audit_names_it(tmp_path: Path):
    tiny_chain.prepare(tmp_path)
    chosen = tiny_chain.settings(tmp_path, {"release": {"approvals": 1}})
    (tmp_path / "settings.json").write_text(chosen.model_dump_json())
    prints = write_keys(tmp_path)
    first = ("models:/eachprompt-tiny/1", "--store", "st")
    reasons = ("--by", "Ann", "--because", "read its answers")
    audited = ("audit", "--store", "st", "--key", "keys.pub", "--model")

    status, text = eachprompt(
        tmp_path, "run", "run", "--settings", "settings.json", "--store", "st"
    )
    assert 0 == status, text[-2000:]
    status, text = eachprompt(tmp_path, "run", *audited, tiny_chain.MODEL)
    assert status, text  # nothing is released yet
    status, text = eachprompt(tmp_path, "run", "approve", *first, *reasons)
    assert "is signed or approved by this key" in text
    assert 2 == status
    status, text = eachprompt(tmp_path, "ann", "approve", *first, *reasons)
    assert (0, True) == (status, "is approved by Ann; it is released." in text), text

    status, text = eachprompt(tmp_path, "run", *audited, tiny_chain.MODEL)
    assert (0, True) == (status, "PROVED: " in text), text
    assert f"Approved by key {prints['ann'][:16]}." in text
