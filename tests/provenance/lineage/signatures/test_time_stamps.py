"""Time stamps, against the time stamp service of OpenSSL."""

import shutil
from pathlib import Path

import pytest

from tasks.errors import EngineError, SettingsError, TamperError
from tasks.provenance.lineage.signatures.time_stamps import (
    SERVICE_VARIABLE,
    read_authorities,
    read_stamp,
    stamp_statement,
    stamp_uri,
)
from tests.time_stamp_service import TimeStampService

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl"),
]
DIGEST, OTHER = 32 * "ab", 32 * "cd"


@pytest.fixture(params=["rsa", "ec"])
def service(request, tmp_path, monkeypatch):
    """A service with a key of its own, which is asked for stamps."""
    with TimeStampService(tmp_path / "service", request.param) as service:
        monkeypatch.setenv(SERVICE_VARIABLE, service.address)
        yield service


def stamped(store: Path, digest: str = DIGEST) -> bytes:
    stamp_statement(str(store), digest)
    return Path(stamp_uri(str(store), digest)).read_bytes()


def test_a_stamp_is_read_offline_with_the_certificate(service, tmp_path):
    content = stamped(tmp_path)
    stamp = read_stamp(content, DIGEST, read_authorities(service.certificate))

    assert "CN=test service" == stamp.authority
    assert service.says(Path(stamp_uri(str(tmp_path), DIGEST)), DIGEST)
    with pytest.raises(TamperError, match="of something else"):
        read_stamp(content, OTHER, read_authorities(service.certificate))


def test_the_first_stamp_of_a_statement_stays(service, tmp_path):
    assert stamped(tmp_path) == stamped(tmp_path)
    assert 1 == service.asked


def test_one_flipped_bit_anywhere_is_refused_or_changes_nothing(service, tmp_path):
    content, authorities = stamped(tmp_path), read_authorities(service.certificate)
    honest = read_stamp(content, DIGEST, authorities)
    refused = 0
    for place in range(len(content)):
        forged = bytearray(content)
        forged[place] ^= 1
        try:
            assert honest == read_stamp(bytes(forged), DIGEST, authorities)
        except TamperError:
            refused += 1

    assert refused > 0.8 * len(content)  # the rest is what no signature covers


def test_another_service_or_an_expired_certificate_vouches_for_nothing(service, tmp_path):
    content = stamped(tmp_path)
    other = TimeStampService(tmp_path / "other", "ec")
    with other, pytest.raises(TamperError, match="no certificate of --key has signed"):
        read_stamp(content, DIGEST, read_authorities(other.certificate))
    expired = read_authorities(service.expired())
    with pytest.raises(TamperError, match="its certificate was not valid"):
        read_stamp(content, DIGEST, expired)


def test_a_certificate_of_something_else_is_refused(service):
    with pytest.raises(SettingsError, match="is no certificate of a time stamp service"):
        read_authorities(service.of_a_server())


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("ftp://here", SettingsError, "give the http:// or https:// address"),
        ("http://127.0.0.1:9", EngineError, "does not answer"),
    ],
)
def test_without_a_stamp_nothing_goes_on(tmp_path, monkeypatch, address, error, message):
    monkeypatch.setenv(SERVICE_VARIABLE, address)

    with pytest.raises(error, match=message):
        stamp_statement(str(tmp_path), DIGEST)


@pytest.mark.slow
@pytest.mark.parametrize("lie", ["of something else", "of an earlier question", "no stamp"])
def test_a_service_that_lies_is_named(service, tmp_path, lie):
    stamped(tmp_path / "first", OTHER)
    service.lie(lie)
    digest = OTHER if lie == "of an earlier question" else DIGEST

    with pytest.raises(EngineError, match=SERVICE_VARIABLE):
        stamp_statement(str(tmp_path / "second"), digest)
    assert not Path(stamp_uri(str(tmp_path / "second"), digest)).exists()
