"""No property of any connector that may hold a secret shows its value, families with any name in them included."""

from __future__ import annotations

import re

import pytest

from tailrace.config import Config
from tailrace.connectors.registry import BUILT_IN, imported
from tailrace.pipeline.masked import is_secret_name

HELD = "h1dden-value"
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
