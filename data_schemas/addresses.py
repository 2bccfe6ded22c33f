"""Addresses of services: which are base URLs, and which hold credentials.

Whatever is typed or set becomes an input of tasks and stands in statements, parameters and
reports, so that credentials in an address are refused before anything is written.
"""

import re
from urllib.parse import SplitResult, urlsplit

_USERINFO = re.compile(r"(?<=://)[^/?#\s]*@")
_PASSWORD = re.compile(r"(?<=://)[^/?#\s:]*:[^/?#\s]*@")
_SECRET_PARAMETER = re.compile(
    r"(?<=[?&])([^=&#\s]*(?:passw|pwd|secret|token|api_?-?key|signature|credential)[^=&#\s]*=)[^&#\s]+",
    re.IGNORECASE,
)


def has_credentials(text: str) -> bool:
    """True if a URI has a user, a password or a secret parameter in it."""
    return "://" in text and bool(_USERINFO.search(text) or _SECRET_PARAMETER.search(text))


def has_password(text: str) -> bool:
    """True if a URI has a password or a secret parameter in it; a user alone is none."""
    return "://" in text and bool(_PASSWORD.search(text) or _SECRET_PARAMETER.search(text))


def redacted(text: str) -> str:
    """Replace the credentials of every URI in a text by `***`."""
    return _SECRET_PARAMETER.sub(r"\1***", _USERINFO.sub("***@", text))


def split_base_url(address: str) -> SplitResult:
    """Split the base URL of a service: http or https, a host, perhaps a port and a path.

    Raises:
        ValueError: it is something else.
    """
    trimmed = address.strip().rstrip("/")
    try:
        parts = urlsplit(trimmed)
        is_base = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of the brackets of IPv6, or the port
        is_base, parts = False, urlsplit("")
    if not is_base or parts.query or parts.fragment or re.search(r"\s", trimmed):
        raise ValueError(f"{redacted(address)!r} is no base URL")
    return parts
