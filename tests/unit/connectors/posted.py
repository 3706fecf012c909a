"""An address that takes notifications by HTTP."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Endpoint(ThreadingHTTPServer):
    """Answers each POST with the next of `answers`, then with 204."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers, self.bodies, self.types = list[int](), list[dict[str, Any]](), list[str]()
        self.holds: threading.Event | None = None
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/path-of-a-secret"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        if self.server.holds is not None:
            self.server.holds.wait(60)
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.types.append(self.headers["Content-Type"])
        self.send_response(self.server.answers.pop(0) if self.server.answers else 204)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass
