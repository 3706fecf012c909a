"""A double of Unity Catalog's server: tables of one schema, by requests that the published OpenAPI file describes.

It refuses what that file does not have: another path or method, an unknown or missing property, another type or word.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_API = json.loads(Path(__file__).with_name("openapi.json").read_text(encoding="utf-8"))
_BASE = urlsplit(_API["servers"][0]["url"]).path
_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int, "boolean": bool, "object": dict}


def problems(value: Any, schema: dict[str, Any], where: str = "body") -> Iterator[str]:
    """What keeps a value from being one of a schema of the OpenAPI file."""
    while "$ref" in schema:
        schema = _API["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    kind = schema.get("type")
    if kind == "array":
        if not isinstance(value, list):
            yield f"{where} is no list"
            return
        for place, each in enumerate(value):
            yield from problems(each, schema["items"], f"{where}[{place}]")
    elif not isinstance(value, _TYPES[kind or "object"]) or (kind == "integer" and isinstance(value, bool)):
        yield f"{where} is no {kind}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value}, which is none of {schema['enum']}"
    elif kind == "object":
        for name in {*schema.get("required", ())} - {*value}:  # type: ignore[misc]
            yield f"{where}.{name} is missing"
        for name, each in value.items():  # type: ignore[attr-defined]
            known = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            yield from [f"{where}.{name} is unknown"] if known is None else problems(each, known, f"{where}.{name}")


class UnityDouble:
    """The server, within a `with`. `token` is asked for if there is one; `refuses` is a status for every request."""

    def __init__(self, token: str | None = None) -> None:
        self.token, self.refuses = token, 0
        self.schemas, self.tables = {"main.shop"}, dict[str, dict[str, Any]]()
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> UnityDouble:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, token: str | None, body: Any) -> tuple[int, Any]:
        """Status and body of an answer."""
        self.asked.append(f"{method} {path}")
        if self.refuses:
            return self.refuses, {"error_code": "REFUSED", "message": "not now"}
        if self.token is not None and token != f"Bearer {self.token}":
            return 401, {"error_code": "UNAUTHENTICATED", "message": "who are you?"}
        kind, _, name = unquote(path.removeprefix(_BASE + "/")).partition("/")
        known = _API["paths"].get(f"/{kind}/{{full_name}}" if name else f"/{kind}", {}).get(method.lower())
        if known is None:
            return 405, {"error_code": "METHOD_NOT_ALLOWED", "message": f"{method} {path}"}
        if method == "POST":
            return self._created(body, known["requestBody"]["content"]["application/json"]["schema"])
        here = self.tables if kind == "tables" else {key: {} for key in self.schemas}
        if name and name not in here:
            return 404, {"error_code": "NOT_FOUND", "message": f"{name} does not exist"}
        if method == "DELETE":
            del self.tables[name]
            return 200, {}
        return 200, here[name] if name else {"tables": [*self.tables.values()]}

    def _created(self, body: Any, schema: dict[str, Any]) -> tuple[int, Any]:
        wrong = [*problems(body, schema)]
        if wrong:
            return 400, {"error_code": "INVALID_ARGUMENT", "message": "; ".join(wrong)}
        within = f"{body['catalog_name']}.{body['schema_name']}"
        name = f"{within}.{body['name']}"
        if within not in self.schemas:
            return 404, {"error_code": "NOT_FOUND", "message": f"{within} does not exist"}
        if name in self.tables:
            return 409, {"error_code": "ALREADY_EXISTS", "message": name}
        self.tables[name] = body
        return 200, body

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                path = urlsplit(self.path).path
                status, answer = double.answer(self.command, path, self.headers.get("Authorization"), body)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_DELETE = do_PATCH = _do

            def log_message(self, *_: object) -> None:
                return

        return Handler
