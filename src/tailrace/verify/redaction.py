"""Keeps names, addresses and secrets out of a report, whatever a probe has let in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_NAME, _ADDRESS = "<name>", "<address>"
_ADDRESSES = re.compile(
    r"[a-z][a-z0-9+.-]*://\S+|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])|(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}(?![\w:])",
    re.IGNORECASE,
)
# A whole value of this form is a version, which may look like an address.
_VERSION = re.compile(r"\d+(?:\.\d+)*")


class Redaction:
    """Replaces words that no report may have. Words within longer ones stay: a user `sa` leaves `same` as it is."""

    def __init__(self, words: Iterable[str]) -> None:
        longest_first = sorted({word for word in words if word}, key=len, reverse=True)
        listed = "|".join(map(re.escape, longest_first))
        self._words = re.compile(rf"(?<![^\W_])(?:{listed})(?![^\W_])", re.IGNORECASE) if listed else None

    def of(self, value: Any) -> Any:
        """A value that is ready for JSON, without what is private in its texts."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {name: self.of(each) for name, each in value.items()}
        return [self.of(each) for each in value] if isinstance(value, list | tuple) else value

    def _text(self, text: str) -> str:
        if self._words is not None:
            text = self._words.sub(_NAME, text)
        return text if _VERSION.fullmatch(text) else _ADDRESSES.sub(_ADDRESS, text)
