"""Masks of columns: what replaces their values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Truncate:
    """Text is cut to `length` characters."""

    length: int


@dataclass(frozen=True, slots=True)
class Stars:
    """Text, and null, becomes `count` asterisks."""

    count: int


@dataclass(frozen=True, slots=True)
class Hash:
    """Text becomes its salted hash in hex. `serialized`: of the value as Java serialises it, not of its UTF-8."""

    algorithm: str
    salt: str
    serialized: bool


_KINDS = {kind.__name__: kind for kind in (Truncate, Stars, Hash)}


@dataclass(frozen=True, slots=True)
class Masking:
    """A mask on one column, see tailrace.model.masked.

    Null is masked as `absent`, the text that replaces it in a required column; without one it stays null. A hash has at
    most `length` characters.
    """

    mask: Truncate | Stars | Hash
    absent: str | None
    length: int

    def to_json(self) -> dict[str, Any]:
        """A JSON form."""
        return {"kind": type(self.mask).__name__, **asdict(self)}

    @staticmethod
    def from_json(node: dict[str, Any]) -> Masking:
        """The inverse of `to_json`."""
        return Masking(_KINDS[node["kind"]](**node["mask"]), node["absent"], node["length"])
