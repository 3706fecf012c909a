"""Evaluates conditions and expressions in a small part of SQL over records, by columns.

    value.op = 'u' AND value.after.amount > 100 AND topic LIKE 'shop.%'

Names: `topic`, `key`, `value`, `keySchema.name`, `valueSchema.name`, `header.<name>`; fields by dots, odd ones in
double quotes. Operators: = <> != < <= > >= AND OR NOT IN LIKE BETWEEN, IS NULL, CASE WHEN, || and + - * /. Functions:
lower, upper, coalesce, concat, substring, length.
A field that a record's schema does not have is null, so that one condition serves all tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.events.records import RecordPart, Records
from tailrace.model.text.numbers import bare_float_text

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<quoted>\"(?:[^\"]|\"\")*\")"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign><>|!=|<=|>=|\|\||[=<>+\-*/(),.]))"
)
_KEYWORDS = frozenset(["and", "or", "not", "in", "like", "between", "is", "case", "when", "then", "else", "end"])
_COMPARISONS: dict[str, str] = {
    "=": "equal",
    "<>": "not_equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "length": pc.utf8_length,
    "coalesce": lambda *values: pc.coalesce(*values),
    "concat": lambda *values: pc.binary_join_element_wise(*map(_as_text, values), ""),
    "substring": lambda text, start, length=None: _substring(text, start, length),
}

Value = Any  # an Arrow array or scalar
Node = Callable[[Records], Value]


@dataclass(frozen=True)
class Expression:
    """A parsed expression; pickled as its text."""

    text: str

    def __post_init__(self) -> None:
        _Parser(self.text).whole()

    def values(self, records: Records) -> pa.Array:
        """Its value for each record. Raises ValueError where types do not fit."""
        try:
            value = _Parser(self.text).whole()(records)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ValueError(f"{self.text}: {error}") from error
        return pa.array([value.as_py()] * len(records), value.type) if isinstance(value, pa.Scalar) else value


class _Parser:
    """Recursive descent: each method takes what binds at least as tight as its name says."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, at = text, [], 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                raise ValueError(f"cannot read the condition at {stripped[at : at + 20]!r}")
            self.tokens.append((str(match.lastgroup), match[match.lastgroup or 0]))
            at = match.end()
        self.at = 0

    def whole(self) -> Node:
        """The expression, to the end of the text. Raises ValueError."""
        try:
            node = self._or()
        except RecursionError as error:
            raise ValueError("the condition is nested too deeply") from error
        if self.at < len(self.tokens):
            raise ValueError(f"cannot read the condition at {self.tokens[self.at][1]!r}")
        return node

    def _peek(self) -> str:
        if self.at >= len(self.tokens):
            return ""
        kind, text = self.tokens[self.at]
        return text.lower() if kind in ("word", "sign") else ""

    def _take(self, *words: str) -> bool:
        """Go past these words if they are next."""
        ahead = [text.lower() for kind, text in self.tokens[self.at : self.at + len(words)] if kind in ("word", "sign")]
        if ahead != list(words):
            return False
        self.at += len(words)
        return True

    def _need(self, word: str) -> None:
        if not self._take(word):
            token = self.tokens[self.at][1] if self.at < len(self.tokens) else "the end"
            raise ValueError(f"{word.upper()} is expected at {token!r}")

    def _or(self) -> Node:
        node = self._and()
        while self._take("or"):
            node = _call(pc.or_kleene, node, self._and())
        return node

    def _and(self) -> Node:
        node = self._not()
        while self._take("and"):
            node = _call(pc.and_kleene, node, self._not())
        return node

    def _not(self) -> Node:
        return _call(pc.invert, self._not()) if self._take("not") else self._comparison()

    def _comparison(self) -> Node:
        node = self._sum()
        if self._peek() in _COMPARISONS:
            name = _COMPARISONS[self._peek()]
            self.at += 1
            other = self._sum()
            return lambda records: _compared(name, node(records), other(records))
        if self._take("is"):
            negated = self._take("not")
            self._need("null")
            return _call(pc.is_valid if negated else pc.is_null, node)
        negated = self._take("not")
        condition = self._matching(node)
        if condition is None:
            if negated:
                raise ValueError("IN, LIKE or BETWEEN is expected after NOT")
            return node
        return _call(pc.invert, condition) if negated else condition

    def _matching(self, node: Node) -> Node | None:
        if self._take("in"):
            self._need("(")
            condition = _equal(node, self._sum())
            while self._take(","):
                condition = _call(pc.or_kleene, condition, _equal(node, self._sum()))
            self._need(")")
            return condition
        if self._take("like"):
            pattern = self._sum()
            return lambda records: pc.match_like(_as_text(node(records)), str(_operand(pattern(records))))
        if self._take("between"):
            low = self._sum()
            self._need("and")
            high = self._sum()
            above: Node = lambda records: _compared("greater_equal", node(records), low(records))  # noqa: E731
            below: Node = lambda records: _compared("less_equal", node(records), high(records))  # noqa: E731
            return _call(pc.and_kleene, above, below)
        return None

    def _sum(self) -> Node:
        node = self._product()
        while self._peek() in ("+", "-", "||"):
            sign = self._peek()
            self.at += 1
            node = _concatenated(node, self._product()) if sign == "||" else _arithmetic(sign, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._operand()
        while self._peek() in ("*", "/"):
            sign = self._peek()
            self.at += 1
            node = _arithmetic(sign, node, self._operand())
        return node

    def _operand(self) -> Node:
        if self._take("("):
            node = self._or()
            self._need(")")
            return node
        if self._take("-"):
            return _call(pc.negate, self._operand())
        if self._take("case"):
            return self._case()
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self._take(word):
                return _constant(pa.scalar(value))
        if self.at >= len(self.tokens):
            raise ValueError("the condition ends too early")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return _constant(pa.scalar(float(text) if "." in text else int(text)))
        if kind == "text":
            return _constant(pa.scalar(text[1:-1].replace("''", "'")))
        if kind == "sign" or text.lower() in _KEYWORDS:
            raise ValueError(f"cannot read the condition at {text!r}")
        return self._function(text) if kind == "word" and self._take("(") else self._path(text, kind)

    def _case(self) -> Node:
        branches = []
        while self._take("when"):
            condition = self._or()
            self._need("then")
            branches.append((condition, self._or()))
        node = self._or() if self._take("else") else _constant(pa.scalar(None))
        self._need("end")
        for condition, value in reversed(branches):
            node = _chosen(condition, value, node)
        return node

    def _function(self, name: str) -> Node:
        if name.lower() not in _FUNCTIONS:
            raise ValueError(f"unknown function {name}; known: {', '.join(_FUNCTIONS)}")
        arguments = [] if self._peek() == ")" else [self._or()]
        while self._take(","):
            arguments.append(self._or())
        self._need(")")
        return _call(_FUNCTIONS[name.lower()], *arguments)

    def _path(self, text: str, kind: str) -> Node:
        path = [_name(text, kind)]
        while self._take("."):
            if self.at >= len(self.tokens):
                raise ValueError("a name is expected after the last dot")
            kind, text = self.tokens[self.at]
            self.at += 1
            path.append(_name(text, kind))
        return _resolved(path)


def _name(text: str, kind: str) -> str:
    if kind not in ("word", "quoted"):
        raise ValueError(f"a name is expected at {text!r}")
    return text[1:-1].replace('""', '"') if kind == "quoted" else text


def _resolved(path: list[str]) -> Node:
    root, rest = path[0].lower(), path[1:]
    if root == "topic" and not rest:
        return lambda records: records.topic
    if root in ("keyschema", "valueschema") and rest == ["name"]:
        return lambda records: _schema_name(records.key if root == "keyschema" else records.value, len(records))
    if root == "header" and len(rest) == 1:
        return lambda records: _header(records, rest[0])
    if root in ("key", "value"):
        return lambda records: _field(records.key if root == "key" else records.value, rest, len(records))
    raise ValueError(f"unknown name {'.'.join(path)}; write topic, key.<field>, value.<field> or header.<name>")


def _schema_name(part: RecordPart | None, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.string()) if part is None else pa.repeat(pa.scalar(part.schema.name, pa.string()), rows)


def _header(records: Records, name: str) -> pa.Array:
    header = records.header(name)
    if header is None:
        return pa.nulls(len(records), pa.string())
    values = header.on(len(records)).values
    return pc.if_else(pa.array(header.where(len(records)), pa.bool_()), values, pa.scalar(None, values.type))


def _field(part: RecordPart | None, path: list[str], rows: int) -> pa.Array:
    for name in path:
        if part is None or part.schema.type != "struct" or not part.has(name):
            return pa.nulls(rows)
        part = part.field(name)
    return pa.nulls(rows) if part is None else part.values


def _constant(value: pa.Scalar) -> Node:
    return lambda records: value


def _call(function: Callable[..., Any], *arguments: Node) -> Node:
    return lambda records: function(*(_boolean(argument(records), function) for argument in arguments))


def _boolean(value: Value, function: Callable[..., Any]) -> Value:
    """Null without a type as a null boolean, where logic asks for one."""
    logic = function in (pc.or_kleene, pc.and_kleene, pc.invert)
    return value.cast(pa.bool_()) if logic and pa.types.is_null(value.type) else value


def _compared(name: str, left: Value, right: Value) -> Value:
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        rows = next((len(value) for value in (left, right) if not isinstance(value, pa.Scalar)), None)
        return pa.scalar(None, pa.bool_()) if rows is None else pa.nulls(rows, pa.bool_())
    return getattr(pc, name)(left, right)


def _equal(left: Node, right: Node) -> Node:
    return lambda records: _compared("equal", left(records), right(records))


def _arithmetic(sign: str, left: Node, right: Node) -> Node:
    return lambda records: getattr(pc, _ARITHMETIC[sign])(left(records), right(records))


def _concatenated(left: Node, right: Node) -> Node:
    return lambda records: pc.binary_join_element_wise(_as_text(left(records)), _as_text(right(records)), "")


def _chosen(condition: Node, value: Node, other: Node) -> Node:
    def chosen(records: Records) -> Value:
        holds = condition(records)
        if pa.types.is_null(holds.type):
            return other(records)
        return pc.if_else(pc.fill_null(holds, False), value(records), other(records))

    return chosen


def _as_text(value: Value) -> Value:
    if pa.types.is_floating(value.type):  # as events have them: NaN, 1.0E10
        values = value if isinstance(value, pa.Array) else pa.array([value.as_py()], value.type)
        text = bare_float_text(values)
        return text if isinstance(value, pa.Array) else text[0]
    return value if pa.types.is_string(value.type) else value.cast(pa.string())


def _operand(value: Value) -> Any:
    if not isinstance(value, pa.Scalar):
        raise ValueError("LIKE takes a pattern in quotes")
    return value.as_py()


def _substring(text: Value, start: Value, length: Value | None) -> Value:
    first = int(_operand(start)) - 1
    stop = None if length is None else first + int(_operand(length))
    return pc.utf8_slice_codeunits(_as_text(text), first, stop)
