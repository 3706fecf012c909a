"""How a schema registry is reached: addresses, certificates, tokens of OAuth and headers of requests."""

from __future__ import annotations

import pytest

from tailrace.errors import ConfigError
from tailrace.events.registry.apicurio_settings import ApicurioSettings
from tailrace.events.registry.confluent import ConfluentSettings
from tailrace.events.registry.form import registry_form
from tailrace.events.registry.http import Address, RegistryConnection
from tailrace.events.registry.oauth import Credentials
from tests.unit.config.test_converter_options import APICURIO, CONFLUENT, OAUTH, apicurio, confluent
from tests.unit.events.event_recordings import configured


def test_files_that_are_not_pem_are_an_error_with_the_command() -> None:
    with pytest.raises(ConfigError, match="name a file that is there"):
        RegistryConnection(Address(("https://k",), trusted="/no/such/file"))
    with pytest.raises(ConfigError, match="keytool -importkeystore"):
        RegistryConnection(Address(("https://k",), trusted=__file__))


def test_what_is_no_address_is_an_error() -> None:
    for url in ("mock://x", "registry:8081", "http://"):
        with pytest.raises(
            ConfigError, match=r"^key\.converter\.schema\.registry\.url: the address .* begins with http"
        ):
            confluent("key", schema__registry__url=url)
        with pytest.raises(ConfigError, match=r"^key\.converter\.apicurio\.registry\.url: the address"):
            apicurio("key", {"url": url})


def test_the_older_names_of_apicurios_access_are_taken() -> None:
    older = {f"key.converter.apicurio.auth.{name}": f"an {name}" for name in ("client.id", "client.secret")}
    found = ApicurioSettings.of(
        configured({**APICURIO, **older, "key.converter.apicurio.auth.service.token.endpoint": "http://oauth"}),
        "key.converter",
    )
    assert found.address.client == Credentials(
        "http://oauth",
        "an client.id",
        "an client.secret",
        login="key.converter.apicurio.registry.auth.client.id and key.converter.apicurio.registry.auth.client.secret",
    )


def test_a_server_of_tokens_without_its_endpoint_is_refused_with_the_endpoint() -> None:
    with pytest.raises(ConfigError, match=r"auth.service.token.endpoint: URL/realms/REALM/"):
        configured({**APICURIO, "value.converter.apicurio.auth.service.url": "http://keycloak"})


def test_a_client_of_oauth_without_its_secret_is_told() -> None:
    given = {name: value for name, value in OAUTH["value.converter"].items() if not name.endswith("client.secret")}
    with pytest.raises(ConfigError, match=r"bearer.auth.client.secret: A value is required") as caught:
        configured({**CONFLUENT, **given})
    assert "apicurio.registry.auth.client.secret: A value is required" in str(caught.value)


@pytest.mark.parametrize(
    ("own", "what"),
    [
        ({"request.header.Authorization": "Bearer s3cret\nX: y"}, "no header of HTTP can have this value"),
        ({"request.header.Authorization": "Bearer s3cr\u00e9t"}, "no header of HTTP can have this value"),
        ({"request.header.My Key": "s3cret"}, "no header of HTTP can have this name"),
    ],
)
def test_what_is_no_header_is_told_without_its_value(own: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        registry_form(configured({**CONFLUENT, **{f"key.converter.{name}": own[name] for name in own}}), "key")
    assert "s3cr" not in str(caught.value)


def test_a_line_break_at_the_end_of_a_secret_is_no_part_of_it() -> None:
    given = {"key.converter.request.header.X-Own": "s3cret\n"}
    assert ConfluentSettings.of(configured({**CONFLUENT, **given}), "key", "key.converter").address.headers == (
        ("X-Own", "s3cret"),
    )


def test_the_older_names_of_apicurios_certificates_are_taken() -> None:
    older = {f"request.ssl.{name}": f"/{name}" for name in ("truststore.location", "keystore.location")}
    found = apicurio("key", {**older, "request.ssl.key.password": "x"}).address
    assert (found.trusted, found.own, found.key_password) == ("/truststore.location", "/keystore.location", "x")


@pytest.mark.parametrize("name", ["key.converter.request.header.X-Own", "Key.Converter.Request.Header.X-Own"])
def test_a_family_of_a_converter_is_found_in_any_case(name: str) -> None:
    config = configured({**CONFLUENT, name: "own"})
    assert ConfluentSettings.of(config, "key", "key.converter").address.headers == (("X-Own", "own"),)
