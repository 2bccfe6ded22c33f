"""Credentials in an address are seen and replaced; what has none is left as it is."""

import pytest

from data_schemas.addresses import has_credentials, has_password, redacted, split_base_url

SECRET = [
    ("http://u:p@host/v1", "http://***@host/v1"),
    ("http://u:p@ss:w@host", "http://***@host"),
    ("http://token@host", "http://***@host"),
    ("s3://key:secret@bucket/x", "s3://***@bucket/x"),
    ("postgresql+psycopg2://u:p@host:5432/db", "postgresql+psycopg2://***@host:5432/db"),
    ("http://h/v1?api_key=x&a=1", "http://h/v1?api_key=***&a=1"),
    ("https://b.s3/x?X-Amz-Credential=a&X-Amz-Signature=b", None),
    ("mysql://h/db?a=1&password=p", "mysql://h/db?a=1&password=***"),
]
HARMLESS = [
    "",
    "http://host:8000/v1",
    "models:/name@released",
    "s3://bucket/folder@2/x",
    "sqlite:////a/b@c/mlflow.db",
    "/data/me:you@here",
    "me@example.com",
    "postgresql://host/db?sslmode=require",
]


@pytest.mark.parametrize(("uri", "shown"), SECRET)
def test_credentials_are_seen_and_replaced(uri, shown):
    assert has_credentials(uri)
    clean = redacted(f"cannot connect to {uri} now")
    assert shown is None or f"cannot connect to {shown} now" == clean
    assert redacted(clean) == clean
    for secret in ("p@ss", ":p@", "token@", "secret", "=x", "=a&", "=b", "=p "):
        assert secret not in clean


@pytest.mark.parametrize("uri", HARMLESS)
def test_an_address_without_credentials_is_left_alone(uri):
    assert not has_credentials(uri)
    assert uri == redacted(uri)


def test_a_user_without_a_password_may_be_named_to_a_database():
    assert not has_password("postgresql://me@host/db")
    assert has_password("postgresql://me:p@host/db")


@pytest.mark.parametrize("url", ["http://h", "https://h:1/v1/", " http://[::1]:8000/v1 "])
def test_a_base_url_has_a_host_and_perhaps_a_port_and_a_path(url):
    assert url.strip().rstrip("/") == split_base_url(url).geturl()


@pytest.mark.parametrize(
    "url",
    [
        *("", "h", "ftp://h", "http://", "http://:80", "http://h:x", "http://h:0"),
        *("http://h:70000", "http://h?x=1", "http://h#x", "http://a b", "http://[::1"),
    ],
)
def test_what_is_no_base_url_is_refused(url):
    with pytest.raises(ValueError, match="is no base URL"):
        split_base_url(url)
