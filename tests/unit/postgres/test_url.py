"""Connection URLs: every parameter that libpq knows becomes a property, or is refused."""

from __future__ import annotations

import psycopg
import pytest

from tailrace.connectors.postgres.admin import url as urls
from tailrace.connectors.postgres.admin.url import properties_of
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.server.connect import parameters
from tailrace.errors import ConfigError

HOST = {"database.hostname": "h", "database.dbname": "d"}


@pytest.mark.parametrize(
    ("url", "properties"),
    [
        ("postgresql://h/d", {}),
        ("postgres://u:p%40w@h:5433/d", {"user": "u", "password": "p@w", "port": "5433"}),
        ("postgresql://h/d?sslmode=require", {"sslmode": "require"}),
        ("postgresql://h/d?ssl=true", {"sslmode": "require"}),
        (
            "postgresql://h/d?sslmode=verify-full&sslrootcert=/a%20b.crt&sslcert=c.crt&sslkey=c.key&sslpassword=pw",
            {
                "sslmode": "verify-full",
                "sslrootcert": "/a b.crt",
                "sslcert": "c.crt",
                "sslkey": "c.key",
                "sslpassword": "pw",
            },
        ),
        ("postgresql:///?host=h&dbname=d&user=u&password=p&port=1", {"user": "u", "password": "p", "port": "1"}),
        ("postgresql://h/d?keepalives=0", {"tcpKeepAlive": "false"}),
        ("postgresql://gr%C3%BCn@h/d", {"user": "grün"}),
    ],
)
def test_the_parts_of_a_url_become_properties(url: str, properties: dict[str, str]) -> None:
    assert properties_of(url) == {**HOST, **{f"database.{name}": value for name, value in properties.items()}}


def test_no_parameter_that_libpq_knows_is_ignored() -> None:
    """It reaches the connection, or it is an error that names it."""
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    assert len(known) > 40
    base = {"topic.prefix": "t", "database.user": "u", **HOST}
    values = {"port": "77", "sslmode": "verify-ca", "keepalives": "0"}
    for name in known & set(urls._PROPERTIES):
        text = values.get(name, "some")
        found = properties_of(f"postgresql://h/d?{name}={text}")
        assert str(parameters(resolve({**base, **found}))[name]) == text
    for name in known - set(urls._PROPERTIES):
        with pytest.raises(ConfigError, match=f"{name} is not supported"):
            properties_of(f"postgresql://h/d?{name}=some")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://h1,h2/d", "several servers"),
        ("postgresql://h1:1,h2:2/d?target_session_attrs=primary", "several servers"),
        ("postgresql://h/d?target_session_attrs=read-write", "target_session_attrs is not supported"),
        ("postgresql://h/d?options=-csearch_path%3Da", "database.initial.statements"),
        ("postgresql:///d?host=/var/run", "a socket directory"),
        ("postgresql://h/d?ssl_mode=require", "a parameter that PostgreSQL does not know"),
        ("postgresql://h/d?sslmode", "a parameter that PostgreSQL does not know"),
        ("postgresql://u:s3cret%zz@h/d", "cannot be read"),
        ("postgresql://u:s3 cret@h/d", "cannot be read"),
        ("postgresql://u:x@s3cret@h/d", "cannot be read"),
    ],
)
def test_what_cannot_be_honoured_is_refused(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        properties_of(url)
    assert said in str(caught.value)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize("url", ["db", "mysql://db/x", "postgresql://db", "postgresql:///x", "host=h dbname=d"])
def test_incomplete_urls(url: str) -> None:
    with pytest.raises(ConfigError, match="the URL is incomplete"):
        properties_of(url)


@pytest.mark.parametrize(
    ("connecting", "logging_in", "seconds"), [("7", "0", 7), ("7", "3", 3), ("2", "3", 2), ("0", "3", 3), ("0", "0", 0)]
)
def test_the_lower_limit_of_connecting_counts(connecting: str, logging_in: str, seconds: int) -> None:
    base = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}
    limits = {"database.connectTimeout": connecting, "database.loginTimeout": logging_in}
    assert parameters(resolve({**base, **limits}))["connect_timeout"] == seconds
