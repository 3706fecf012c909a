"""The HTTP server: who may ask what, and what a bad request gets."""

from __future__ import annotations

import base64
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tailrace.errors import ConfigError
from tailrace.operate.server import TOKEN, HttpRequest, Response, Server
from tailrace.operate.serving import address
from tailrace.pipeline.definition import HttpSection
from tailrace.testing.process import free_port


def echo(request: HttpRequest) -> Response:
    if request.path == "/fails":
        raise RuntimeError("secret detail")
    return Response({"method": request.method, "query": dict(request.query), "is_trusted": request.is_trusted})


@contextmanager
def serving(host: str = "127.0.0.1") -> Iterator[int]:
    port = free_port()
    server = Server(echo, port, host)
    try:
        yield port
    finally:
        server.close()


def asked(
    port: int, method: str = "GET", path: str = "/x", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    finally:
        connection.close()


def test_reading_on_the_loopback_needs_no_token_and_writing_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "s3cret")
    with serving() as port:
        assert asked(port)[0] == 200
        for method in ("PUT", "POST", "PATCH", "DELETE"):
            assert asked(port, method)[0] == 401
            assert asked(port, method, Authorization="Bearer wrong")[0] == 401
            assert asked(port, method, Authorization="Basic s3cret")[0] == 401
            assert asked(port, method, Authorization="Bearer s3cret")[0] == 200


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def test_the_token_may_come_as_a_password_but_not_from_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kcctl sends a user and a password; a browser would send those that it remembers for any page."""
    monkeypatch.setenv(TOKEN, "s3:cret")
    with serving() as port:
        for user in ("kcctl", "", "any one"):
            assert asked(port, "PUT", Authorization=basic(f"{user}:s3:cret"))[0] == 200
        for wrong in (basic("kcctl:s3"), basic("s3:cret"), basic("kcctl"), basic(""), "Basic", "Basic %%%", "Basic s3"):
            assert asked(port, "PUT", Authorization=wrong)[0] == 401
        assert asked(port, "PUT", Authorization=basic("u:s3:cret"), Origin="http://evil.example")[0] == 401
        assert asked(port, "PUT", Authorization="Bearer s3:cret", Origin=f"http://127.0.0.1:{port}")[0] == 200


def test_without_a_token_nothing_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    for token in (None, ""):
        monkeypatch.delenv(TOKEN, raising=False) if token is None else monkeypatch.setenv(TOKEN, token)
        with serving() as port:
            for given in ("", "Bearer ", "Bearer None"):
                status, said = asked(port, "PUT", Authorization=given)
                assert (status, TOKEN in said["message"]) == (403, True)


def test_a_page_of_another_site_cannot_read_what_this_machine_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of another site may lead to the loopback (DNS rebinding); the header Host tells."""
    monkeypatch.setenv(TOKEN, "s3cret")
    with serving() as port:
        assert asked(port, Host="evil.example:80")[0] == 403
        assert asked(port, Host="[")[0] == 403
        assert asked(port, Host=f"localhost:{port}")[0] == 200
        assert asked(port, Host="[::1]:1")[0] == 200
        assert asked(port, path="/health", Host="evil.example")[1]["is_trusted"] is False


def test_beyond_the_loopback_a_token_is_needed_for_all_but_health(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(ConfigError, match=f"other machines, and there is no token(?s:.*){TOKEN}"):
        Server(echo, free_port(), "0.0.0.0")
    monkeypatch.setenv(TOKEN, "s3cret")
    with serving("0.0.0.0") as port:
        assert asked(port, path="/metrics")[0] == 401
        assert asked(port, path="/metrics", Authorization="Bearer s3cret")[0] == 200
        for path in ("/health", "/ready"):
            assert asked(port, path=path) == (200, {"method": "GET", "query": {}, "is_trusted": False})


def test_an_error_shows_no_detail_and_the_server_goes_on() -> None:
    with serving() as port:
        status, said = asked(port, path="/fails")
        assert (status, "secret" in str(said)) == (500, False)
        assert asked(port, path="/x?expand=info&expand=status&a=1&a=2")[1]["query"] == {
            "expand": "info,status",
            "a": "2",
        }


@pytest.mark.parametrize("lines", [b"Content-Length: 99999999", b"Content-Length: -1", b"Content-Length: x"])
def test_a_body_that_is_too_large_is_refused_unread(lines: bytes) -> None:
    with serving() as port, socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"PUT /x HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_port_that_is_taken_is_named() -> None:
    with serving() as port, pytest.raises(ConfigError, match=f"nobody can listen at 127.0.0.1:{port}"):
        Server(echo, port)


def test_where_to_listen() -> None:
    assert address("9404") == HttpSection(port=9404, host="127.0.0.1")
    assert address("0.0.0.0:80") == HttpSection(port=80, host="0.0.0.0")
    assert address("[::1]:80") == HttpSection(port=80, host="::1")
    for wrong in ("", "x", "1:x", "70000", "-1"):
        with pytest.raises(ConfigError, match="is no port"):
            address(wrong)
