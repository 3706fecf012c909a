"""Db2's SQL for the parser: what its conditions have and standard SQL lacks."""

from __future__ import annotations

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect

from tailrace.override import override

_UNITS = frozenset(
    unit + plural
    for unit in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND")
    for plural in ("", "S")
)
_REGISTERS = frozenset(("DATE", "TIME", "TIMESTAMP", "TIMEZONE", "SERVER", "SCHEMA", "USER"))


class Db2(Dialect):
    """The dialect. Its generator is never used."""

    class Tokenizer(tokens.Tokenizer):
        """Literals with a prefix."""

        HEX_STRINGS = [(f"{prefix}'", "'") for prefix in ("X", "x", "BX", "bx", "GX", "gx", "UX", "ux")]  # noqa: RUF012
        RAW_STRINGS = [(f"{prefix}'", "'") for prefix in ("G", "g")]  # noqa: RUF012
        UNICODE_STRINGS = [(f"{prefix}'", "'") for prefix in ("U&", "u&")]  # noqa: RUF012

    class Parser(parser.Parser):
        """Special registers of two words (CURRENT DATE), and durations (3 DAYS)."""

        @override
        def _parse_unary(self) -> exp.Expr | None:
            expression = self._register() or super()._parse_unary()
            while expression is not None and self._curr and self._curr.text.upper() in _UNITS:
                unit = self._curr.text
                self._advance()
                expression = exp.Interval(this=expression, unit=exp.Var(this=unit))
            return expression

        def _register(self) -> exp.Expr | None:
            if not self._curr or not self._next:
                return None
            if self._curr.text.upper() != "CURRENT" or self._next.text.upper() not in _REGISTERS:
                return None
            name = f"{self._curr.text} {self._next.text}"
            self._advance(2)
            return exp.Var(this=name)
