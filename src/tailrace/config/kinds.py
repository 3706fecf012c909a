"""Kinds of property values: each parses a text, or raises an error that says what is expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tailrace.javalike.patterns import compile_pattern

Patterns = tuple[re.Pattern[str], ...]
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# RFC 1035, 2.3.4.
_LONGEST_LABEL = 63
_INT, _LONG = 2**31 - 1, 2**63 - 1
_LARGEST_PORT = 2**16 - 1
_POSITIVE = "A positive, non-zero integer value is expected"
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_KEY_ENTRY = re.compile(r"^\s*([^:]+):([^:,]+(,[^:,]+)*)\s*$")
_IDENTITY_ENTRY = re.compile(r"^\s*([^\s:]+):(DEFAULT|FULL|NOTHING|INDEX\s+\S+)\s*$", re.IGNORECASE)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_PLAIN_COMMA = re.compile(r"(?<!\\)((?:\\\\)*),")


class InvalidValue(Exception):
    """A value its kind refuses: `message` says what is expected, `remedy` (optional) what to write instead."""

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True)
class Kind(Generic[T_co]):
    """`label` names the kind in the reference; `parse` raises InvalidValue; blank text is unset or parsed.

    `unset` is the value of a property that is not given and has no default; without `may_be_unset` such a property
    must be given.
    """

    label: str
    parse: Callable[[str], T_co]
    blank_is_unset: bool = True
    may_be_unset: bool = False
    unset: object = None


def optional(kind: Kind[T]) -> Kind[T | None]:
    """The kind of a property that may have no value, which is None then."""
    return Kind(kind.label, kind.parse, kind.blank_is_unset, may_be_unset=True)


def _several(label: str, parse: Callable[[str], tuple[T, ...]], *, blank_is_unset: bool = True) -> Kind[tuple[T, ...]]:
    """A kind of which a property that is not given has no items."""
    return Kind(label, parse, blank_is_unset, may_be_unset=True, unset=())


def split_list(text: str) -> list[str]:
    r"""The trimmed, non-blank items of a comma list; `\,` is a comma that does not split."""
    items = re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)
    return [_ESCAPED.sub(_comma, item).strip() for item in items if item.strip()]


def join_list(items: Iterable[object]) -> str:
    """The comma list of these items; a comma in one of them is escaped, unless it is already."""
    return ",".join(_PLAIN_COMMA.sub(r"\1\\,", str(item)) for item in items)


def _comma(match: re.Match[str]) -> str:
    return "," if match[0] == r"\," else match[0]


def expression(*parts: str) -> str:
    """A table, by the parts of its name, as an entry of an include list: an expression, which a comma would end."""
    return r"\.".join(re.sub(r"([^\w ])", r"\\\1", part) for part in parts)


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InvalidValue("Either 'true' or 'false' is expected")
    return text.strip().lower() == "true"


def _number(largest: int, smallest: int, message: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]+", text.strip()) or not smallest <= int(text) <= largest:
            raise InvalidValue(message)
        return int(text)

    return parse


def _port(text: str) -> int:
    number = _number(_INT, 1, _POSITIVE)(text)
    if number > _LARGEST_PORT:
        raise InvalidValue(f"A port is expected, a number up to {_LARGEST_PORT}")
    return number


def _byte_size(text: str) -> int:
    match = re.fullmatch(r"([0-9]+)\s*([kmg]?)b?", text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise InvalidValue("A positive number of bytes is expected", "write plain bytes or a size such as 64m or 1g")
    return int(match[1]) * _UNITS[match[2]]


def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(compile_pattern(item) for item in split_list(text))
    except re.error as reason:
        raise InvalidValue(
            f"A comma-separated list of valid regular expressions is expected, but {reason}",
            r"a comma inside an expression is written \,",
        ) from reason


def _pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except re.error as reason:
        raise InvalidValue(f"A valid regular expression is expected, but {reason}") from reason
    return text


def _key_columns(text: str) -> tuple[re.Pattern[str], ...]:
    """Tables and columns joined to expressions as they are (Key.CustomKeyMapper).

    So blanks before a colon stay, and of several tables, between commas or bars, only the last one has the columns.
    """
    if not text.strip():
        raise InvalidValue("Must not be empty", "write schema.table:column1,column2;other.table:column")
    patterns = []
    for entry in filter(str.strip, text.split(";")):
        match = _KEY_ENTRY.match(entry)
        if match is None:
            raise InvalidValue(f"{entry} has an invalid format (expecting '{_KEY_ENTRY.pattern}')")
        joined = (f"{match[1]}.{column.strip()}" for column in match[2].split(","))
        patterns += ["|".join(split_list(each)) for each in joined]
    try:
        return tuple(compile_pattern(pattern) for pattern in patterns)
    except re.error as reason:
        raise InvalidValue(f"{reason.pattern!r} is not a valid regular expression: {reason}") from reason


def _identities(text: str) -> tuple[str, ...]:
    entries = split_list(text)
    for entry in entries:
        if not _IDENTITY_ENTRY.match(entry):
            raise InvalidValue(f"{entry} has an invalid format (expecting '{_IDENTITY_ENTRY.pattern}')")
    return tuple(entries)


def _operations(text: str) -> tuple[str, ...]:
    """As Debezium does, `r` is accepted, and reads are sent all the same."""
    items = [item.lower() for item in split_list(text)]
    if set(items) - {"c", "u", "d", "t", "r", "none"}:
        raise InvalidValue("Invalid operation", "list some of c, u, d, t, or write none")
    if "none" in items and len(items) > 1:
        raise InvalidValue("'none' cannot be specified with other skipped operation types")
    return tuple(item for item in items if item not in ("none", "r"))


def matching(label: str, expression: str, message: str) -> Kind[str]:
    """Text that must match as a whole; `{}` in the message is replaced by the value."""
    compiled = re.compile(expression)

    def parse(text: str) -> str:
        if not compiled.fullmatch(text.strip()):
            raise InvalidValue(message.replace("{}", text))
        return text.strip()

    return Kind(label, parse)


def choice(*values: str, refused: Mapping[str, str] | None = None, otherwise: str | None = None) -> Kind[str]:
    """One of `values`, in any case; `refused` maps known values that do not work to what to do instead, as does
    `otherwise` for every unknown one."""
    by_name = {value.lower(): value for value in values}
    sentences = {value.lower(): sentence for value, sentence in (refused or {}).items()}

    def parse(text: str) -> str:
        value = text.strip().lower()
        if value in sentences:
            raise InvalidValue(f"'{text.strip()}' is not supported today", sentences[value])
        if value not in by_name:
            raise InvalidValue(f"Value must be one of {', '.join(values)}", otherwise)
        return by_name[value]

    return Kind(" \\| ".join(values), parse)


def listed(*values: str, refused: Mapping[str, str]) -> Kind[tuple[str, ...]]:
    """A comma list of some of `values`; `refused` maps known ones that do not work to what to do instead."""
    item_kind = choice(*values, refused=refused)
    return _several(", ".join(values), lambda text: tuple(item_kind.parse(item) for item in split_list(text)))


TEXT = Kind("text", str, blank_is_unset=False)
FLAG = Kind("boolean", _flag)
INT = Kind("int", _number(_INT, -_INT - 1, "An integer is expected"))
POSITIVE_INT = Kind("int > 0", _number(_INT, 1, _POSITIVE))
PORT = Kind("port", _port)
DIGITS = Kind("int, 0 to 59", _number(59, 0, "An integer from 0 to 59 is expected"))
COUNT = Kind("int ≥ 0", _number(_INT, 0, "An non-negative integer is expected"))
LONG = Kind("long", _number(_LONG, -_LONG - 1, "A long value is expected"))
POSITIVE_LONG = Kind("long > 0", _number(_LONG, 1, "A positive, non-zero long value is expected"))
LONG_COUNT = Kind("long ≥ 0", _number(_LONG, 0, "A non-negative long value is expected"))
BYTE_SIZE = Kind("bytes (64m, 1g)", _byte_size)
NAMES = _several("list", lambda text: tuple(split_list(text)))
PATTERNS = _several("regex list", _patterns)
PATTERN = Kind("regex", _pattern)
KEY_COLUMNS = _several("table:column,...;...", _key_columns, blank_is_unset=False)
IDENTITIES = _several("table:identity,...", _identities)
OPERATIONS = _several("c, u, d, t or none", _operations)
ADDRESS = matching(
    "text",
    r"[A-Za-z0-9_.\-]+",
    "{} has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)",
)


def _host(text: str) -> str:
    """Names that no resolver takes are refused: some raise errors of their own for them."""
    name = ADDRESS.parse(text)
    if any(not 0 < len(part) <= _LONGEST_LABEL for part in name.removesuffix(".").split(".")):
        raise InvalidValue(f"{name} is no host: each of its parts has 1 to {_LONGEST_LABEL} characters")
    return name


HOST = Kind("text", _host)
