"""The console: one page without a build step, which asks `/status` and steers by Connect's REST."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tailrace.operate.server import HttpRequest, Response

_PAGE = Path(__file__).with_name("console.html")
# The page has its script and style in itself, loads nothing, and is shown in no other page.
_POLICY = "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
_HEADERS = {"Content-Security-Policy": f"{_POLICY}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}


def answer(request: HttpRequest) -> Response | None:
    """The page at /console; who asks for / with a browser is led there."""
    if request.method not in ("GET", "HEAD"):
        return None
    if request.path == "/" and "text/html" in request.accepts:
        return Response(None, 302, headers={"Location": "/console"})
    if request.path != "/console":
        return None
    return Response(_content(), type="text/html; charset=utf-8", headers=_HEADERS)


@cache
def _content() -> bytes:
    return _PAGE.read_bytes()
