"""Checks that the converters of a configuration have the addresses and the logins of their registries."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.config.converter_names import APICURIO, BYTES_OR_OTHER, CONFLUENT
from tailrace.config.option import Option
from tailrace.config.options.apicurio import (
    APICURIO_AUTH_CLIENT_ID,
    APICURIO_AUTH_CLIENT_SECRET,
    APICURIO_AUTH_ENDPOINT,
    APICURIO_URL,
)
from tailrace.config.options.converters import (
    BEARER_AUTH_CLIENT_ID,
    BEARER_AUTH_CLIENT_SECRET,
    BEARER_AUTH_CREDENTIALS_SOURCE,
    BEARER_AUTH_ISSUER_ENDPOINT_URL,
    CONVERTER,
    DELEGATE_CONVERTER,
    SCHEMA_REGISTRY_URL,
)
from tailrace.config.resolve import Config, Problem


def converter_of(config: Config, part: str) -> tuple[str, str | None]:
    """What the properties of the converter begin with that has schemas, and its class: of BinaryDataConverter the
    other one that it calls, None if there is none."""
    converter = CONVERTER[part]
    if config[converter] != BYTES_OR_OTHER:
        return converter.name, config[converter]
    delegate = DELEGATE_CONVERTER.within(converter.name)
    return delegate.name, config[delegate]


def check_addresses(config: Config) -> Iterator[Problem]:
    """The registries' addresses are there."""
    for part in ("key", "value"):
        name, kind = converter_of(config, part)
        if kind in CONFLUENT + APICURIO:
            address = (SCHEMA_REGISTRY_URL if kind in CONFLUENT else APICURIO_URL).within(name)
            if not config[address]:
                yield Problem(address.name, "A value is required", "it is the address of the schema registry")
        yield from _clients(config, name)
    yield from _clients(config, f"{CONVERTER['value'].name}.avro")


def _clients(config: Config, prefix: str) -> Iterator[Problem]:
    """A client of OAuth has all that it needs."""
    own = config.within(prefix)
    wanted: list[Option[str | None]] = []
    if own[BEARER_AUTH_CREDENTIALS_SOURCE] == "OAUTHBEARER":
        wanted += [BEARER_AUTH_ISSUER_ENDPOINT_URL, BEARER_AUTH_CLIENT_ID, BEARER_AUTH_CLIENT_SECRET]
    if own[APICURIO_AUTH_ENDPOINT]:
        wanted += [APICURIO_AUTH_CLIENT_ID, APICURIO_AUTH_CLIENT_SECRET]
    for option in wanted:
        if not own[option]:
            yield Problem(option.within(prefix).name, "A value is required", "OAuth asks for tokens with it")
