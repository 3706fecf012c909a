"""Decides which fields of documents are removed or renamed: `field.exclude.list` and `field.renames`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import and_

import numpy as np

from tailrace.connectors.mongodb.types.edit import FieldEdit, apply, compact
from tailrace.connectors.mongodb.types.layout import ABSENT, Flags, Values
from tailrace.connectors.mongodb.types.strings import slices
from tailrace.connectors.mongodb.types.walk import members
from tailrace.errors import ConfigError
from tailrace.override import override

_EXCLUDE, _RENAME = "field.exclude.list", "field.renames"


@dataclass(frozen=True)
class FieldRule:
    """A field of the collections whose `database.collection` matches; without a new name it is left out."""

    collections: re.Pattern[str]
    path: tuple[str, ...]
    new_name: str | None = None

    def edit(self, way: tuple[str, ...] = (), used: int = 0) -> FieldEdit:
        """The edit of documents that are behind `way`, which has used up so many names of the path."""
        return FieldEdit(
            ((way,) if way else ()) + tuple((name,) for name in self.path[used:-1]), {self.path[-1]: self.new_name}
        )

    def edits(self, names: Sequence[str]) -> list[FieldEdit]:
        """The edits of updated fields with these dotted names: of the field, and of what it is in."""
        fields = {name: self.renamed(name) for name in names if _is_in(name, self.path)}
        ways = [(used, tuple(name for name in names if _nodes(name) == self.path[:used])) for used in self._used]
        return [*([FieldEdit((), fields)] if fields else []), *(self.edit(way, used) for used, way in ways if way)]

    @property
    def _used(self) -> range:
        return range(1, len(self.path))

    def renamed(self, name: str) -> str | None:
        """The new form of a dotted name that is this field or in it; None where it is left out."""
        if self.new_name is None:
            return None
        if name == ".".join(self.path):
            return ".".join((*self.path[:-1], self.new_name))
        nodes, seen = name.split("."), 0
        for place, node in enumerate(nodes):
            if not node.isdecimal():
                seen += 1
                if seen == len(self.path):
                    nodes[place] = self.new_name
        return ".".join(nodes)


class CollectionFields:
    """The rules for one collection, in the order in which they apply: what is left out, then what is renamed.

    With `is_upward` names of removed fields are those that the reference engine chooses: a rule is for the field
    and for all that it is in, but not for what is in it. Of the updated fields that it is in, only the first is edited.
    """

    def __init__(self, rules: Sequence[FieldRule], *, is_upward: bool = False) -> None:
        self._rules, self._is_upward = rules, is_upward

    def __bool__(self) -> bool:
        return bool(self._rules)

    @property
    def excluded(self) -> list[str]:
        """The paths of the fields that are left out."""
        return [".".join(rule.path) for rule in self._rules if rule.new_name is None]

    @override
    def __str__(self) -> str:
        return ", ".join(f"{'.'.join(rule.path)}:{rule.new_name or ''}" for rule in self._rules)

    def documents(self, values: Values) -> Values:
        """Full documents as the rules leave them."""
        values = compact(values)
        for rule in self._rules:
            values = apply(values, rule.edit())
        return values

    def changes(self, values: Values) -> Values:
        """The updated fields of update descriptions, whose names are dotted and have array indexes among them."""
        values = compact(values)
        for rule in self._rules:
            if not self._is_upward:
                for edit in rule.edits(_distinct_names(values)):
                    values = apply(values, edit)
                continue
            for rows, names in _alike([_met(names, rule.path) for names in _member_names(values)]):
                for edit in rule.edits(names):
                    values = _edited(values, rows, edit)
        return values

    def name(self, name: str) -> str | None:
        """A dotted name of a removed field or a truncated array; None where it is left out."""
        for rule in self._rules:
            if _holds(name, rule.path) if self._is_upward else _is_in(name, rule.path):
                return rule.renamed(name)
        return name


def parse_rules(excluded: str | None, renamed: str | None) -> list[FieldRule]:
    """The rules of the two properties. Raises ConfigError for an entry that is none."""
    rules = [FieldRule(*_parts(entry, entry, _EXCLUDE, "")) for entry in _entries(excluded)]
    for entry in _entries(renamed):
        field, colon, new_name = entry.strip().partition(":")
        collections, path = _parts(field, entry, _RENAME, ":<newNestedFieldName>")
        if not colon or not new_name or ":" in new_name:
            raise _invalid(entry, _RENAME, ":<newNestedFieldName>")
        rules.append(FieldRule(collections, path, new_name))
    return rules


def rules_for(
    rules: Sequence[FieldRule], database: str, collection: str, *, is_upward: bool = False
) -> CollectionFields:
    """The rules that apply to a collection."""
    return CollectionFields(
        [rule for rule in rules if rule.collections.fullmatch(f"{database}.{collection}")], is_upward=is_upward
    )


def _entries(text: str | None) -> list[str]:
    """The entries of a list; commas at its end are none, as for Java's split."""
    return text.strip().rstrip(",").split(",") if text and text.strip(" \t\r\n,") else []


def _parts(field: str, entry: str, option: str, rest: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    parts = field.strip().split(".")
    if len(parts) < 3 or not all(parts):
        raise _invalid(entry, option, rest)
    database, collection = (part.replace("*", ".*") for part in parts[:2])
    try:
        return re.compile(rf"{database}\.{collection}", re.IGNORECASE), tuple(parts[2:])
    except re.error as error:
        raise _invalid(entry, option, rest) from error


def _invalid(entry: str, option: str, rest: str) -> ConfigError:
    form = f"<databaseName>.<collectionName>.<fieldName>.<nestedFieldName>{rest}"
    return ConfigError(f"{entry.strip()} has invalid format (expecting {form})", where=option)


def _nodes(name: str) -> tuple[str, ...]:
    """The names in a dotted name, without the indexes of arrays.

    An array in an array is left as it is, as in documents. Debezium: FieldSelector.Path.excludeNumericItems.
    """
    nodes = tuple(name.split("."))
    numeric = [node.isdecimal() for node in nodes]
    if len(nodes) == 1 or any(map(and_, numeric, numeric[1:])):
        return nodes
    return tuple(node for node, is_index in zip(nodes, numeric, strict=True) if not is_index)


def _is_in(name: str, path: tuple[str, ...]) -> bool:
    """Whether a dotted name is the field of that path or in it."""
    return name == ".".join(path) or _nodes(name)[: len(path)] == path


def _holds(name: str, path: tuple[str, ...]) -> bool:
    """Whether a dotted name is the field of that path or one that it is in."""
    nodes = _nodes(name)
    return nodes == path[: len(nodes)]


def _met(names: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
    """The names that the reference engine looks at: the field, else those up to the first one that the field is in.

    Debezium: FieldSelector.Path.modifyFieldsWithDotNotation.
    """
    if ".".join(path) in names:
        return (".".join(path),)
    ends = (place for place, name in enumerate(names, 1) if len(_nodes(name)) < len(path) and _holds(name, path))
    return names[: next(ends, len(names))]


def _alike(names: Sequence[tuple[str, ...]]) -> list[tuple[Flags, tuple[str, ...]]]:
    """The rows with the same names, and these."""
    kinds = {each: number for number, each in enumerate(dict.fromkeys(names))}
    codes = np.array([kinds[each] for each in names], np.int64)
    return [(codes == code, each) for each, code in kinds.items() if each]


def _edited(values: Values, rows: Flags, edit: FieldEdit) -> Values:
    """The documents, with those in these rows edited."""
    kinds = np.where(rows, values.kinds, ABSENT).astype(np.uint8)
    edited = apply(Values(values.buffer, kinds, values.starts), edit)
    return Values(edited.buffer, values.kinds, edited.starts)


def _distinct_names(values: Values) -> list[str]:
    """The names of fields, each once."""
    elements = members(values)
    if not len(elements):
        return []
    names = slices(values.buffer, elements.names, elements.name_ends)
    return [str(name) for name in names.unique().to_pylist()]


def _member_names(values: Values) -> list[tuple[str, ...]]:
    """The names of each document's fields, in their order."""
    names_by_row: list[list[str]] = [[] for _ in range(len(values))]
    elements = members(values)
    if len(elements):
        names = slices(values.buffer, elements.names, elements.name_ends).to_pylist()
        for row, name in zip(elements.rows.tolist(), names, strict=True):
            names_by_row[row].append(str(name))
    return [tuple(each) for each in names_by_row]
