"""Java's regular expressions and replacements, as topic names and transforms use them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\\(.)|\$(?:(\d+)|\{(\w+)\})|([^\\$]+)", re.DOTALL)
_QUOTED_OR_GROUP = re.compile(r"\\Q(.*?)(?:\\E|$)|\\.|\(\?<(?=[A-Za-z])", re.DOTALL)


def compile_pattern(text: str) -> re.Pattern[str]:
    """A Debezium (Java) regular expression, case-insensitive for ASCII as there; use `fullmatch`. Raises re.error."""
    return re.compile(to_python(text), re.IGNORECASE | re.ASCII)


def to_python(text: str) -> str:
    """A Java regular expression in Python's notation."""
    return _QUOTED_OR_GROUP.sub(_to_python, text)


def _to_python(match: re.Match[str]) -> str:
    if match[1] is not None:
        return re.escape(match[1])
    return "(?P<" if match[0] == "(?<" else match[0]


def pattern(text: str) -> re.Pattern[str]:
    """A case-sensitive Java expression; use `fullmatch`. Raises re.error."""
    return re.compile(compile_pattern(text).pattern, re.ASCII)


@dataclass(frozen=True)
class Rewrite:
    """What Java's `matches` and then `replaceFirst` do: text that an expression matches as a whole is replaced."""

    pattern: re.Pattern[str]
    pieces: tuple[str | int, ...]

    @staticmethod
    def of(expression: str, replacement: str) -> Rewrite:
        """From Java's forms: `$1`, `${name}` and `\\x` in the replacement. Raises ValueError."""
        try:
            compiled = pattern(expression)
        except re.error as error:
            raise ValueError(f"{expression!r} is no regular expression: {error}") from error
        return Rewrite(compiled, tuple(_pieces(compiled, replacement)))

    def __call__(self, text: str) -> str | None:
        """The replaced text; None where the expression does not match."""
        match = self.pattern.fullmatch(text)
        if match is None:
            return None
        return "".join(piece if isinstance(piece, str) else match[piece] or "" for piece in self.pieces)


def _pieces(compiled: re.Pattern[str], replacement: str) -> list[str | int]:
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        token = _TOKEN.match(replacement, at)
        if token is None:
            raise ValueError(f"replacement {replacement!r}: $ needs a group, a plain one is written \\$")
        at = token.end()
        if token[2] is not None:
            number, rest = _group(compiled, token[2], replacement)
            pieces += [number, rest]
        elif token[3] is not None:
            if token[3] not in compiled.groupindex:
                raise ValueError(f"replacement {replacement!r}: the expression has no group {token[3]!r}")
            pieces.append(compiled.groupindex[token[3]])
        else:
            pieces.append(token[1] if token[1] is not None else token[4])
    return pieces


def _group(compiled: re.Pattern[str], digits: str, replacement: str) -> tuple[int, str]:
    """The group a number means: as many digits as give one that exists, as Java reads them."""
    for length in range(len(digits), 0, -1):
        if int(digits[:length]) <= compiled.groups:
            return int(digits[:length]), digits[length:]
    raise ValueError(f"replacement {replacement!r}: the expression has {compiled.groups} groups")
