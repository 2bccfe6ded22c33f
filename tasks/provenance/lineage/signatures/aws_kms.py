"""A signing key of AWS KMS: the private half never leaves the service.

The key has the spec ECC_NIST_P256 and the usage SIGN_VERIFY. The service is sent the sha256 of what
is signed, never a statement. Its nonces are random: the same bytes signed again have another
signature. Region, endpoint (AWS_ENDPOINT_URL_KMS) and credentials are boto3's.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from data_schemas.addresses import redacted
from tasks.errors import EngineError, SettingsError
from tasks.provenance.lineage.signatures.dsse import Signer

SCHEME = "awskms:"
FORM = "awskms:///alias/NAME"
"""Or the id or ARN of a key in place of the alias, as cosign writes it."""
_ADDRESS = re.compile(r"awskms:///(?P<key>[A-Za-z0-9:/_-]+)")
_MAY_PASS = frozenset({"ThrottlingException", "DependencyTimeoutException", "KMSInternalException"})


def find_key(address: str) -> Signer:
    """Return a signer whose every signature is a call of the service.

    Args:
        address: see `FORM`.

    Raises:
        SettingsError: the address is none, or the key is not there, not allowed or of another kind.
        EngineError: the service does not answer.
    """
    if not (match := _ADDRESS.fullmatch(address)):
        raise SettingsError(
            f"{address!r} is no key of AWS KMS. Write {FORM}; an endpoint is set by "
            "AWS_ENDPOINT_URL_KMS."
        )
    name = match["key"]
    with _service(address) as service:
        answer = service.get_public_key(KeyId=name)
    if (answer["KeySpec"], answer["KeyUsage"]) != ("ECC_NIST_P256", "SIGN_VERIFY"):
        raise SettingsError(
            f"{address} is a key of {answer['KeySpec']} for {answer['KeyUsage']}. Make one: "
            "aws kms create-key --key-spec ECC_NIST_P256 --key-usage SIGN_VERIFY"
        )
    key = cast(EllipticCurvePublicKey, serialization.load_der_public_key(answer["PublicKey"]))

    def sign(digest: bytes) -> bytes:
        with _service(address) as service:
            return service.sign(
                KeyId=name, Message=digest, MessageType="DIGEST", SigningAlgorithm="ECDSA_SHA_256"
            )["Signature"]

    return Signer(key, sign)


@contextmanager
def _service(address: str) -> Iterator[Any]:
    """Yield a client; its errors become ours and name the key."""
    from boto3.session import Session
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        NoRegionError,
    )

    try:
        yield Session().client("kms")  # the default session is not thread-safe
    except (NoCredentialsError, NoRegionError) as error:
        raise SettingsError(f"{address}: {error} Set credentials and region of AWS.") from error
    except ClientError as error:
        text = f"{address}: {redacted(str(error))}"
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status >= 500 or error.response["Error"]["Code"] in _MAY_PASS:
            raise EngineError(text) from error
        raise SettingsError(f"{text}. It needs kms:GetPublicKey and kms:Sign.") from error
    except BotoCoreError as error:
        raise EngineError(f"{address}: {redacted(str(error))}") from error
