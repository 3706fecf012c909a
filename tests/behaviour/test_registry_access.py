"""A schema registry that asks who is there: passwords, tokens and certificates, on a real port."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from tailrace.errors import SinkError
from tailrace.events.registry import http
from tailrace.events.registry.http import Address, Http


class _Asked(BaseHTTPRequestHandler):
    """Answers with what was asked; 401 to everybody but the one whose Authorization is expected."""

    expected: str | None = None
    refusal = 401

    def do_GET(self) -> None:
        is_known = self.expected is None or self.headers.get("Authorization") == self.expected
        body = json.dumps({"path": self.path} if is_known else {"message": "who are you?"}).encode()
        self.send_response(200 if is_known else self.refusal)
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


def asked(address: Address) -> http.Answer:
    """The answer to one request."""
    client = Http(address, patience_seconds=0.1)
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
