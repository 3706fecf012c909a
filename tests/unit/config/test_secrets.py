"""No property of any connector that may hold a secret shows its value, families with any name in them included."""

from __future__ import annotations

import logging
import re

import pytest

from tailrace.config import Config
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.options import DATABASE_PASSWORD
from tailrace.connectors.registry import BUILT_IN, imported
from tailrace.errors import ConfigError
from tailrace.pipeline.masked import is_secret_name

HELD = "h1dden-value"
BASE = {
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "s3cret",
    "database.dbname": "d",
    "topic.prefix": "server1",
}
# What Kafka's clients, registries and drivers call their secrets.
ENDINGS = (
    "password",
    "ssl.keystore.key",
    "ssl.key.password",
    "sasl.jaas.config",
    "basic.auth.user.info",
    "bearer.auth.token",
    "request.header.Authorization",
    "apicurio.registry.request.headers.Authorization",
    "auth.client.secret",
    "transport.auth.apiKey",
)
# They hold the name of something, or how long it lives.
NO_SECRETS = re.compile(
    r".*(token\.endpoint|endpoint|credentials\.source|access\.token\.lifetime|private\.key\.password\.file|\.file)$"
)


def shown(name: str) -> str:
    """What a log says of a configuration with the property."""
    return repr(Config({"custom.sanitize.pattern": None}, {name: HELD}))


@pytest.mark.parametrize("connector", BUILT_IN)
def test_a_secret_in_a_family_is_never_shown(connector: str) -> None:
    table = imported(BUILT_IN[connector].options or "")
    families = [option for option in table if option.name.endswith(".*") and not option.secret]
    assert families
    open_ = [
        name
        for option in families
        for name in (option.named(ending).name for ending in ENDINGS)
        if not is_secret_name(name) or HELD in shown(name)
    ]
    assert open_ == []


@pytest.mark.parametrize("connector", BUILT_IN)
def test_a_property_with_the_name_of_a_secret_is_one(connector: str) -> None:
    table = imported(BUILT_IN[connector].options or "")
    open_ = [
        option.name
        for option in table
        if is_secret_name(option.name)
        and option.kind.label == "text"
        and not option.secret
        and not NO_SECRETS.fullmatch(option.name)
    ]
    assert open_ == []


def test_secrets_never_show(caplog: pytest.LogCaptureFixture) -> None:
    secret = "s3cret"
    given = {**BASE, "database.sslpassword": secret, "signal.consumer.sasl.jaas.config": secret, "my.password": secret}
    with caplog.at_level(logging.DEBUG):
        config = resolve(given)
    assert secret not in repr(config) + str(config.shown()) + str(config.warnings) + caplog.text
    assert config.need(DATABASE_PASSWORD) == secret
    with pytest.raises(ConfigError) as caught:
        resolve({**given, "column.mask.hash.MD5.with.salt.s3cret": "a", "slot.name": "X"})
    assert secret not in str(caught.value)


def test_another_pattern_of_secrets_masks_what_it_names() -> None:
    config = resolve({**BASE, "custom.sanitize.pattern": ".*hostname"})
    assert "s3cret" not in repr(config)
    assert config.shown()["database.hostname"] == config.shown()["database.password"] == "********"


def test_a_faulty_pattern_of_secrets_is_a_problem() -> None:
    with pytest.raises(ConfigError, match=r"custom\.sanitize\.pattern"):
        resolve({**BASE, "custom.sanitize.pattern": "("})


@pytest.mark.parametrize(
    "host", ["postgresql://u:s3cret@h/d", "postgresql://u:s3@cret@h", "h;PWD=s3cret;x=1", "h?password=s3cret"]
)
def test_an_error_has_no_password_of_an_address(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({**BASE, "database.hostname": host})
    assert "cret" not in str(caught.value)
    assert "********" in str(caught.value)
