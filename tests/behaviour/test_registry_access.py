"""A schema registry that asks who is there: passwords, tokens and certificates, on a real port."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest
import trustme

from tailrace.config.converter_names import CONFLUENT_AVRO
from tailrace.errors import SinkAwayError, SinkError
from tailrace.events.registry import http
from tailrace.events.registry.confluent import ConfluentRegistry, ConfluentSettings
from tailrace.events.registry.http import Address, RegistryConnection
from tailrace.events.registry.oauth import Credentials
from tailrace.events.registry.registry import Wanted
from tests.unit.events.event_recordings import configured


class _Asked(BaseHTTPRequestHandler):
    """Answers with what was asked; 401 to everybody but the one whose Authorization is expected."""

    expected: str | None = None
    refusal = 401
    given: ClassVar[list[Any]] = []
    seen: ClassVar[list[tuple[str, dict[str, str]]]] = []
    lifetime = 3600.0

    def do_GET(self) -> None:
        self.seen.append((self.path, dict(self.headers)))
        is_known = self.expected is None or self.headers.get("Authorization") == self.expected
        body = json.dumps({"path": self.path} if is_known else {"message": "who are you?"}).encode()
        self.send_response(200 if is_known else self.refusal)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Gives tokens, one after the other, to the client `i` with the secret `s`."""
        self.seen.append((self.path, dict(self.headers)))
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        is_client = self.headers.get("Authorization") == "Basic " + base64.b64encode(b"i:s").decode()
        self.given.append(form)
        answer = {"access_token": f"t{len(self.given)}", "token_type": "Bearer", "expires_in": self.lifetime}
        body = json.dumps(answer if is_client else {"error": "invalid_client"}).encode()
        self.send_response(200 if is_client else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def listening(context: ssl.SSLContext | None = None, **more: Any) -> Iterator[str]:
    """The address of such a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Asked,), more))
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def asked(address: Address) -> http.RegistryResponse:
    """The answer to one request."""
    client = RegistryConnection(address, patience_seconds=0.1)
    try:
        return client.ask("GET", "/subjects")
    finally:
        client.close()


def test_a_password_or_a_token_is_sent() -> None:
    basic = "Basic " + base64.b64encode(b"a:b:c").decode()
    with listening(expected=basic) as url:
        assert asked(Address((url,), user=("a", "b:c"))).body == {"path": "/subjects"}
    with listening(expected="Bearer t") as url:
        assert asked(Address((url,), token="t")).is_good


@pytest.mark.parametrize(("refusal", "what"), [(401, "does not know this user"), (403, "does not allow this user")])
def test_a_wrong_user_is_told_with_the_properties_and_without_the_password(refusal: int, what: str) -> None:
    with listening(expected="x", refusal=refusal) as url:
        address = Address((url,), user=("a", "s3cret"), login="value.converter.basic.auth.user.info")
        with pytest.raises(SinkError, match=what) as caught:
            asked(address)
    assert "who are you?" in caught.value.what
    assert "value.converter.basic.auth.user.info" in (caught.value.remedy or "")
    assert "s3cret" not in str(caught.value)


def test_certificates_are_checked_and_shown(tmp_path: Path) -> None:
    authority, own = trustme.CA(), tmp_path / "own.pem"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(str(own))
    with listening(context) as url:
        assert asked(Address((url,), trusted=str(tmp_path / "ca.pem"), own=str(own))).is_good
        with pytest.raises(SinkError, match="certificate is not trusted") as caught:
            asked(Address((url,), own=str(own), truststore="x.truststore.location"))
        assert "x.truststore.location" in (caught.value.remedy or "")


def test_tokens_of_oauth_are_kept_until_they_expire() -> None:
    given: list[Any] = []
    with listening(given=given, lifetime=3600.0) as oauth, listening(expected="Bearer t1") as url:
        client = RegistryConnection(
            Address((url,), client=Credentials(oauth, "i", "s", "read write")), patience_seconds=0.1
        )
        assert client.ask("GET", "/subjects").is_good
        assert client.ask("GET", "/subjects").is_good
        client.close()
    assert given == [{"grant_type": ["client_credentials"], "scope": ["read write"]}]


def test_a_token_that_expires_or_is_revoked_is_renewed() -> None:
    given: list[Any] = []
    with listening(given=given, lifetime=0.2) as oauth, listening(expected="Bearer t2") as url:
        client = RegistryConnection(Address((url,), client=Credentials(oauth, "i", "s")), patience_seconds=0.1)
        assert client.ask("GET", "/subjects").is_good  # t1 is refused, as a revoked one is
        time.sleep(0.3)
        with pytest.raises(SinkError, match="does not know this user"):
            client.ask("GET", "/subjects")  # t3, and t4 after its refusal
        client.close()
    assert len(given) == 4


def test_a_client_without_a_token_is_told_with_the_properties_and_without_the_secret() -> None:
    with listening(given=[]) as oauth, listening() as url:
        address = Address((url,), client=Credentials(oauth, "i", "s3cret", login="bearer.auth.client.id"))
        with pytest.raises(SinkError, match="the authorization server gives no token: invalid_client") as caught:
            asked(address)
        assert (caught.value.where, caught.value.remedy) == (oauth, "correct bearer.auth.client.id")
        assert "s3cret" not in f"{caught.value} {address}"


def test_a_server_of_tokens_that_is_away_is_waited_for_like_the_registry() -> None:
    with listening() as url:
        address = Address((url,), client=Credentials("http://127.0.0.1:9", "i", "s"))
        with pytest.raises(SinkAwayError, match="ConnectError"):
            asked(address)


def of_confluent(url: str, **own: str) -> Address:
    """The address of a registry with settings of its converter, `__` for a dot."""
    settings = {f"key.converter.{name.replace('__', '.')}": value for name, value in own.items()}
    given = {"key.converter": CONFLUENT_AVRO, "key.converter.schema.registry.url": url, **settings}
    return ConfluentSettings.of(configured(given), "key", "key.converter").address


def test_headers_that_are_given_are_sent_to_the_registry_and_not_to_the_server_of_tokens() -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    with listening(expected="Bearer s3cret") as url:
        assert asked(of_confluent(url, request__header__Authorization="Bearer s3cret")).is_good
    with listening(seen=seen, given=[]) as oauth, listening(seen=seen, expected="Bearer t1") as url:
        address = of_confluent(
            url,
            request__header__Gateway="s3cret",
            bearer__auth__credentials__source="OAUTHBEARER",
            bearer__auth__issuer__endpoint__url=f"{oauth}/token",
            bearer__auth__client__id="i",
            bearer__auth__client__secret="s",
        )
        assert asked(address).is_good
        assert "s3cret" not in repr(address)
    assert [(path, headers.get("Gateway")) for path, headers in seen] == [("/token", None), ("/subjects", "s3cret")]


def test_a_proxy_is_asked_in_place_of_the_registry() -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    with listening(seen=seen) as proxy:
        port = proxy.rpartition(":")[2]
        assert asked(of_confluent("http://registry.invalid:8081", proxy__host="127.0.0.1", proxy__port=port)).is_good
    assert [path for path, _ in seen] == ["http://registry.invalid:8081/subjects"]


def test_a_certificate_for_another_server_is_taken_only_where_the_configuration_says_so(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trusted, algorithm = {"schema__registry__ssl__truststore__location": str(tmp_path / "ca.pem")}, "identification"
    with listening(context) as url:
        with pytest.raises(SinkError, match="certificate is not trusted"):
            asked(of_confluent(url, **trusted))
        assert asked(of_confluent(url, **trusted, **{f"schema__registry__ssl__endpoint__{algorithm}__algorithm": ""}))
        with pytest.raises(SinkError, match="certificate is not trusted"):
            asked(Address((url,), checks_name=False))
        assert asked(Address((url,), trusts_all=True)).is_good


def test_an_answer_that_takes_longer_than_is_set_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = of_confluent(f"http://127.0.0.1:{silent.getsockname()[1]}", http__read__timeout__ms="50")
        before = time.monotonic()
        with pytest.raises(SinkAwayError, match="ReadTimeout"):
            asked(address)
        assert time.monotonic() - before < 60


class _Moded(_Asked):
    """A registry with one schema, whose subjects take no others."""

    def do_GET(self) -> None:
        self._answer(
            200, {"mode": "READONLY"} if self.path.startswith("/mode/") else {"compatibilityLevel": "BACKWARD"}
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(*((200, {"id": 1, "is_compatible": True}) if "there" in body else (404, {"error_code": 40401})))

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def test_a_subject_that_takes_no_schemas_is_told_unless_it_has_the_schema() -> None:
    with listening(do_GET=_Moded.do_GET, do_POST=_Moded.do_POST, _answer=_Moded._answer) as url:
        given = {"key.converter": CONFLUENT_AVRO, "key.converter.schema.registry.url": url}
        registry = ConfluentRegistry(ConfluentSettings.of(configured(given), "key", "key.converter"))
        refusal = registry.refusal(Wanted("t", "key", {}, '"new"'))
        assert refusal is not None
        assert (refusal.what, refusal.where) == ("the subject takes no schemas, its mode is READONLY", "subject t-key")
        assert registry.refusal(Wanted("t", "key", {}, '"there"')) is None
        assert registry.about() == f"{url} answers, subjects: 1, rule BACKWARD"
