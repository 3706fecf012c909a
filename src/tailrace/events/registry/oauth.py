"""Tokens of OAuth by client credentials (RFC 6749, section 4.4): asked for, kept, and renewed before they expire."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tailrace.errors import SinkError

if TYPE_CHECKING:
    import httpx

# A token without `expires_in`, which the standard only recommends.
_LIFETIME_SECONDS = 300.0
_LARGEST_PART = 0.2


@dataclass(frozen=True)
class Credentials:
    """A client of an authorization server; `login` names its properties in messages.

    A token is renewed `buffer_seconds` before it expires, or for a fifth of its life if that is less.
    """

    endpoint: str
    client: str
    secret: str = field(repr=False)
    scope: str | None = None
    buffer_seconds: int = 300
    login: str = ""


class Tokens:
    """The token of a client, the same one until it has to be renewed."""

    def __init__(self, credentials: Credentials, client: httpx.Client) -> None:
        self._credentials, self._client = credentials, client
        self._token, self._until = "", 0.0

    def header(self) -> dict[str, str]:
        """The header of a request. Raises SinkError where the server refuses, httpx.TransportError where it is away."""
        if time.monotonic() >= self._until:
            self._renew()
        return {"Authorization": f"Bearer {self._token}"}

    def forget(self) -> bool:
        """Ask for another token next time; whether there was one."""
        had, self._until = self._until > 0, 0.0
        return had

    def _renew(self) -> None:
        given = self._credentials
        form = {"grant_type": "client_credentials", **({"scope": given.scope} if given.scope else {})}
        answer = self._client.post(given.endpoint, data=form, auth=(given.client, given.secret))
        body = answer.json() if answer.headers.get("content-type", "").startswith("application/json") else {}
        if answer.is_error or not body.get("access_token"):
            said = body.get("error_description") or body.get("error") or f"status {answer.status_code}"
            raise SinkError(
                f"the authorization server gives no token: {said}",
                where=given.endpoint,
                remedy=f"correct {given.login}",
            )
        lifetime = float(body.get("expires_in") or _LIFETIME_SECONDS)
        self._token = str(body["access_token"])
        self._until = time.monotonic() + lifetime - min(given.buffer_seconds, lifetime * _LARGEST_PART)
