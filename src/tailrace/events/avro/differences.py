"""Says how two Avro schemas differ, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Node = Any


def change(old: Node, new: Node) -> str:
    """The fields that are added, dropped and changed, by their paths; `nothing` where data of both are alike."""
    differences = list(_between(_Names(old), _Names(new), old, new, ""))
    return ", ".join(differences) if differences else "nothing"


class _Names:
    """The records of a schema by full and short names."""

    def __init__(self, node: Node) -> None:
        self._records: dict[str, Node] = {}
        self._collect(node, "")

    def of(self, node: Node) -> Node:
        """The definition that a name stands for."""
        return self._records.get(node, node) if isinstance(node, str) else node

    def _collect(self, node: Node, space: str) -> None:
        if isinstance(node, list):
            for member in node:
                self._collect(member, space)
        elif isinstance(node, Mapping):
            if "fields" in node:
                space = node.get("namespace", node["name"].rpartition(".")[0] or space)
                short = node["name"].rpartition(".")[2]
                for name in (short, f"{space}.{short}"):
                    self._records.setdefault(name, node)
                for field in node["fields"]:
                    self._collect(field["type"], space)
            for inner in ("items", "values"):
                self._collect(node.get(inner, ""), space)


def _between(old_names: _Names, new_names: _Names, old: Node, new: Node, path: str) -> Iterator[str]:
    old, new = old_names.of(old), new_names.of(new)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for old_branch, new_branch in zip(old, new, strict=True):
            yield from _between(old_names, new_names, old_branch, new_branch, path)
        return
    if _is_record(old) and _is_record(new):
        before = {field["name"]: field for field in old["fields"]}
        after = {field["name"]: field for field in new["fields"]}
        for name in dict.fromkeys([*before, *after]):
            where = f"{path}.{name}" if path else name
            if name not in after:
                yield f"{where} is dropped"
            elif name not in before:
                default = "" if "default" in after[name] else " without a default"
                yield f"{where} is added{default}"
            else:
                yield from _between(old_names, new_names, before[name]["type"], after[name]["type"], where)
        if list(before) != list(after) and before.keys() == after.keys():
            yield f"the fields of {path or 'the record'} stand in another order"
        return
    if _shown(old) != _shown(new):
        yield f"{path or 'the schema'} was {_shown(old)} and is {_shown(new)}"
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for inner in ("items", "values"):
            yield from _between(old_names, new_names, old.get(inner, ""), new.get(inner, ""), path)


def _is_record(node: Node) -> bool:
    return isinstance(node, Mapping) and "fields" in node


def _shown(node: Node) -> str:
    """The type alone: names and properties of Connect do not change a datum."""
    if isinstance(node, list):
        return f"a union of {', '.join(_shown(member) for member in node)}"
    if isinstance(node, Mapping):
        return "record" if "fields" in node else str(node["type"])
    return str(node)
