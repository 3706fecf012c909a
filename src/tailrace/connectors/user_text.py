"""Reads SQL that a signal brings: one condition, or one query, and nothing that writes.

The text is cut into tokens of a few kinds that every server ends at the same place, and what is sent is written again
from them: names and literals in quotes of one kind, without comments, one blank between tokens. Each parenthesis ends
within the text, so where it stands in parentheses it cannot leave them. A parser then looks at what the tokens say
(decision 40).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tailrace.errors import SignalError

if TYPE_CHECKING:
    # It is imported for the first text: most pipelines have none.
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

# The parser takes some 22 frames of Python's stack, which has 1,000, for each parenthesis.
_DEEPEST = 30
# What some conversions between character sets turn into a quote.
_LIKE_QUOTES = (
    "`\u00b4\u02b9\u02ba\u02bb\u02bc\u02bd\u02c8\u055a\u05f3\u05f4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f"
)
_LIKE_QUOTES += "\u2032\u2033\u2035\u2036\ua78c\uff02\uff07\uff40"
_NEVER = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff{_LIKE_QUOTES}]")
_COMMENT = r"--[^\r\n]*|/\*(?:(?!/\*|\*/).)*\*/"
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])"


@dataclass(frozen=True)
class Grammar:
    """What such a text may have in one database.

    `dialect` gives that of the parser, a name or a class. `prefixes` come before literals, `brackets` says whether
    names may have them; `operators` and `numbers` (a pattern) are those that it has in addition. `refused` are words,
    or some words in a row, that no condition and no query needs.
    """

    dialect: Callable[[], str | type[Dialect]]
    prefixes: tuple[str, ...]
    operators: tuple[str, ...]
    refused: frozenset[tuple[str, ...]]
    brackets: bool = False
    numbers: str = "(?!)"

    @lru_cache(maxsize=8)  # noqa: B019  # grammars last as long as the process, and each chunk asks for the same text
    def condition(self, text: str) -> str:
        """A condition as it is sent. Raises SignalError for a text that is no single expression, or that may write."""
        from sqlglot import exp

        written = self._written(text)
        if not isinstance(self._parsed(written, exp.Condition), exp.Condition):
            raise _refused("it is no condition")
        return written

    @lru_cache(maxsize=8)  # noqa: B019
    def query(self, text: str) -> str:
        """A query as it is sent, without what ends it. Raises SignalError as `condition` does."""
        from sqlglot import exp

        written = self._written(text.rstrip("; \t\r\n"))
        if not isinstance(self._parsed(written, exp.Select), exp.Query):
            raise _refused("it is no SELECT")
        return written

    def _written(self, text: str) -> str:
        """The text from its tokens."""
        tokens = self._tokens(text)
        if not tokens:
            raise _refused("it is empty")
        self._check_words(tokens)
        _check_parentheses(tokens)
        _check_dots(tokens)
        written = ""
        for place, token in enumerate(tokens):
            # A name and its parts stay together.
            joined = place and "." in (token.text, tokens[place - 1].text)
            written += token.text if joined or not place else f" {token.text}"
        return written

    def _tokens(self, text: str) -> list[_Token]:
        strange = _NEVER.search(text)
        if strange:
            raise _refused(f"it has the character U+{ord(strange[0]):04X}")
        tokens: list[_Token] = []
        at, pattern = 0, self._pattern()
        while at < len(text):
            match = pattern.match(text, at)
            if match is None:
                raise _refused(f"it cannot be read from {text[at : at + 20]!r} on")
            at = match.end()
            kind = match.lastgroup or ""
            if kind != "nothing":
                tokens.append(_Token(kind, self._quoted(match[0]) if kind == "name" else match[0]))
        return tokens

    def _pattern(self) -> re.Pattern[str]:
        prefixes = "|".join(map(re.escape, self.prefixes))
        operators = sorted((*_OPERATORS, *self.operators), key=len, reverse=True)
        quoted = r'"(?:[^"]|"")+"(?!")' + (r"|\[(?:[^\]]|\]\])+\](?!\])" if self.brackets else "")
        return re.compile(
            rf"(?P<nothing>[ \t\r\n]+|{_COMMENT})|(?P<literal>(?:{prefixes})?'(?:[^']|'')*'(?!'))|(?P<name>{quoted})"
            rf"|(?P<number>{self.numbers}|{_NUMBER})|(?P<word>[A-Za-z_][A-Za-z0-9_@#$]*)"
            # What could open or close a comment is no operator.
            rf"|(?!/\*|\*/)(?P<operator>{'|'.join(map(re.escape, operators))})",
            re.DOTALL | re.IGNORECASE | re.ASCII,
        )

    def _quoted(self, name: str) -> str:
        """A name in the only kind of quotes that means a name whatever a session is set to."""
        if not self.brackets:
            return name
        plain = name[1:-1].replace("]]", "]") if name[0] == "[" else name[1:-1].replace('""', '"')
        return "[" + plain.replace("]", "]]") + "]"

    def _check_words(self, tokens: Sequence[_Token]) -> None:
        words = tuple(token.text.upper() if token.kind == "word" else "" for token in tokens)
        for place in range(len(words)):
            refused_words = [
                words[place : place + size] for size in (1, 2, 3) if words[place : place + size] in self.refused
            ]
            if refused_words:
                marks = "brackets" if self.brackets else "double quotes"
                raise _refused(f"it has {' '.join(refused_words[0])}", f"if that is a name, put it in {marks}")

    def _parsed(self, text: str, kind: type[exp.Expr]) -> exp.Expr:
        """What the parser makes of a text."""
        from sqlglot.dialects.dialect import Dialect
        from sqlglot.errors import SqlglotError

        try:
            trees = Dialect.get_or_raise(self.dialect()).parse_into(kind, text)
        except (SqlglotError, RecursionError, ValueError, AttributeError, TypeError) as error:
            raise _refused(f"it is not understood: {str(error).splitlines()[0]}") from error
        (tree,) = trees
        if tree is None or any(type(node).__name__ in _NODES for node in tree.walk()):
            raise _refused("it is more than a query")
        return tree


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    @property
    def is_name(self) -> bool:
        """Whether it may be a name or a part of one."""
        return self.kind in ("name", "word")


_OPERATORS = ("=", "<>", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "||", ".", ",", "(", ")")
# Parts of a tree that change something, or that belong to no single query.
_NODES = frozenset(
    ("Insert", "Update", "Delete", "Merge", "Create", "Drop", "Alter", "Command", "Into", "Lock", "Set", "Use", "Block")
)


def _check_parentheses(tokens: Sequence[_Token]) -> None:
    depth = cases = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.kind == "word":
            cases += {"CASE": 1, "END": -1}.get(token.text.upper(), 0)
        if depth < 0:
            raise _refused("a parenthesis ends that does not begin in it")
        # The parser descends into both.
        if depth + max(cases, 0) > _DEEPEST:
            raise _refused(f"its parentheses and CASE are nested deeper than {_DEEPEST}")
    if depth:
        raise _refused("a parenthesis does not end in it")


def _check_dots(tokens: Sequence[_Token]) -> None:
    """A dot joins names; beside a number it would become part of that."""
    for place, token in enumerate(tokens):
        if token.text != ".":
            continue
        before, after = tokens[place - 1] if place else None, tokens[place + 1] if place + 1 < len(tokens) else None
        if before is None or after is None or not (before.is_name or before.text in ".)"):
            raise _refused("a dot in it joins no names")
        if not (after.is_name or after.text in (".", "*")):
            raise _refused("a dot in it joins no names")


def _refused(why: str, remedy: str = "") -> SignalError:
    text = "write one condition (with blocking: one SELECT) that only reads; docs/signals.md says what it may have"
    return SignalError(f"the SQL of the signal is refused, {why}", remedy=f"{remedy}; {text}" if remedy else text)
