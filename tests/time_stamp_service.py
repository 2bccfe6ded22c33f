"""A time stamp service of RFC 3161 on loopback: OpenSSL answers."""

import subprocess
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CONFIGURATION = """
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""
_KEYS = {
    "rsa": ("RSA", "rsa_keygen_bits:2048"),
    "ec": ("EC", "ec_paramgen_curve:P-256"),
}


class TimeStampService:
    """A service with a key and a certificate of its own."""

    def __init__(self, folder: Path, kind: str) -> None:
        folder.mkdir()
        self._folder = folder
        self.asked = 0
        self._lie = ""
        self._last = b""
        (folder / "serial").write_text("01\n")
        (folder / "openssl.cnf").write_text(_CONFIGURATION.format(folder=folder))
        algorithm, option = _KEYS[kind]
        _openssl("genpkey", "-algorithm", algorithm, "-pkeyopt", option, "-out", folder / "key.pem")
        self.certificate = self._certify(ExtendedKeyUsageOID.TIME_STAMPING)
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = self.rfile.read(int(self.headers["Content-Length"]))
                answer = service.answer(question)
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/stamps"

    def __enter__(self) -> "TimeStampService":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, question: bytes) -> bytes:
        """Answer a question, or lie as it was told."""
        self.asked += 1
        if self._lie == "no stamp":
            return b"busy"
        if self._lie:
            return self._last
        asked, answered = self._folder / "asked.tsq", self._folder / "answered.tsr"
        asked.write_bytes(question)
        with_key = ("-signer", self.certificate, "-inkey", self._folder / "key.pem")
        named = ("-config", self._folder / "openssl.cnf", "-queryfile", asked)
        _openssl("ts", "-reply", *named, *with_key, "-out", answered)
        self._last = answered.read_bytes()
        return self._last

    def lie(self, how: str) -> None:
        """Answer with rubbish from now on, or with the last stamp."""
        self._lie = how

    def says(self, stamp: Path, digest: str) -> bool:
        """Let OpenSSL verify a stamp."""
        trusted = ("-CAfile", self.certificate, "-untrusted", self.certificate)
        _openssl("ts", "-verify", "-digest", digest, "-in", stamp, *trusted)
        return True

    def expired(self) -> Path:
        """A certificate of the same key that is not valid any more."""
        return self._certify(ExtendedKeyUsageOID.TIME_STAMPING, begins=-9, ends=-1)

    def of_a_server(self) -> Path:
        """A certificate of the same key for something else."""
        return self._certify(ExtendedKeyUsageOID.SERVER_AUTH)

    def _certify(self, use: x509.ObjectIdentifier, *, begins: int = -1, ends: int = 10) -> Path:
        """Write a certificate of the key; days are counted from today."""
        key = serialization.load_pem_private_key((self._folder / "key.pem").read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test service")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=begins))
            .not_valid_after(now + timedelta(days=ends))
            .add_extension(x509.ExtendedKeyUsage([use]), critical=True)
            .sign(key, hashes.SHA256())
        )
        path = self._folder / f"{use.dotted_string}_{ends}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
