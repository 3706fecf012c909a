"""The protocols of a single message transform and a predicate: functions over the Records of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import pyarrow as pa

from tailrace.errors import TransformError
from tailrace.events.records import Bools, Header, RecordPart, Records


class Transform(Protocol):
    """Turns the records of a batch into others; each result depends on its record alone."""

    def apply(self, records: Records) -> list[Records]:
        """What becomes of records under one schema: none, the same, or several groups under new schemas."""


class Predicate(Protocol):
    """Tells to which records a transform is applied."""

    def holds(self, records: Records) -> Bools:
        """Record by record whether it holds."""


class InPlace(Transform, Protocol):
    """A transform that adds headers to records with a value, in place; `apply` sees them added.

    In the reference a delete and its tombstone share their headers until a transform makes a new record of the delete.
    So headers added to a delete in place show on its tombstone, which comes later.
    """

    def added(self, records: Records) -> tuple[Header, ...]:
        """The headers of records with a value."""


class ByValues:
    """A base of transforms whose topics or schemas follow from the values of records."""


@dataclass(frozen=True)
class Stage:
    """A transform with the condition under which it is applied; others pass."""

    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def run(self, groups: Sequence[Records]) -> list[Records]:
        """The transform applied to all groups of a batch."""
        chosen, out = [], []
        for group in groups:
            if self.predicate is None:
                chosen.append(group)
            else:
                yes, no = group.split(self.predicate.holds(group) ^ self.negate)
                chosen += [yes]
                out += [no]
        if hasattr(self.transform, "added"):
            chosen, out = _with_headers(cast(InPlace, self.transform), chosen, out)
        for group in chosen:
            if len(group):
                out += self.transform.apply(group)
        return [group for group in out if len(group)]


def _with_headers(
    transform: InPlace, chosen: list[Records], others: list[Records]
) -> tuple[list[Records], list[Records]]:
    """Both with the headers the transform adds to the chosen ones, and those on the tombstones of either."""
    for place, group in enumerate(chosen):
        if group.value is None or not len(group):
            continue
        added = transform.added(group)
        chosen[place] = group.adding(*added)
        if added and group.shares_headers:
            chosen, others = (
                [_shared(each, group, added) if each.value is None else each for each in groups]
                for groups in (chosen, others)
            )
    return chosen, others


def _shared(tombstones: Records, deletes: Records, added: tuple[Header, ...]) -> Records:
    """Tombstones with the headers added to the deletes right before them."""
    at = np.searchsorted(deletes.order, tombstones.order - 1)
    at = np.minimum(at, len(deletes) - 1)
    paired = deletes.order[at] == tombstones.order - 1
    if not paired.any():
        return tombstones
    headers = [header.take(at) for header in added]
    return tombstones.adding(
        *(Header(each.name, each.part, each.where(len(at)) & paired, each.constant) for each in headers)
    )


def require(part: RecordPart, name: str, where: str) -> RecordPart:
    """A field that must be there. Raises TransformError."""
    if part.schema.type != "struct" or not part.has(name):
        names = ", ".join(field.name for field in part.schema.fields) or part.schema.type
        raise TransformError(
            f"there is no field {name!r} in {part.schema.name or 'the record'}", where=where, remedy=f"It has: {names}."
        )
    return part.field(name)


def texts(part: RecordPart, where: str) -> pa.Array:
    """The values of a text field. Raises TransformError for another type."""
    if part.schema.type != "string":
        raise TransformError(f"the field is {part.schema.type}, not a string", where=where)
    return part.values
