"""Translates oplog entries to the change events that a change stream would send, as BSON.

The form of entries: https://github.com/mongodb/mongo/blob/master/src/mongo/db/repl/README.md. An update is a
difference (`$v: 2`), `$set` and `$unset` (`$v: 1`, servers before 5.0), or the whole new document.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tailrace.connectors.mongodb.position import beginning_of
from tailrace.connectors.mongodb.types.elements import Value, array, document, element, elements, text, text_of
from tailrace.connectors.mongodb.types.layout import DOCUMENT

Fields = dict[bytes, Value]
# The namespaces that an event is about, of a rename both, and the event.
Event = tuple[tuple[str, ...], bytes]
_NO_TIME = bytes(8)
_TRUE = b"\1"
_KINDS = {b"i": b"insert", b"u": b"update", b"d": b"delete"}
_SERVERS_OWN = (b"admin", b"config", b"local")
_uint64 = struct.Struct("<Q")


def time_of_entry(entry: bytes) -> int:
    """The cluster time of an entry, as a 64-bit BSON timestamp."""
    return int(_uint64.unpack(dict(elements(entry))[b"ts"][1])[0])


class MissingParts(Protocol):
    """What an entry does not have."""

    def entry(self, time: int) -> bytes:
        """The entry of a time: a large transaction has several, and each names the one before it."""

    def document(self, namespace: str, key: bytes) -> bytes | None:
        """The document of a key as it is now: of an array that an update cut, an entry has only the new length."""


def change_events(entry: bytes, lookup: MissingParts) -> Iterator[Event]:
    """The change events of an entry: one, those of a transaction that it commits, or none."""
    fields = dict(elements(entry))
    if text_of(fields[b"op"]) != b"c":
        yield from _event(fields, fields, 0, lookup)
        return
    structural = _structural(fields)
    if structural is not None:
        yield structural
        return
    operations = [each for part in reversed(list(_parts(fields, lookup))) for each in _operations(part)]
    for place, operation in enumerate(operations):
        yield from _event(dict(elements(operation)), fields, place, lookup)


def _structural(entry: Fields) -> Event | None:
    """The event of an entry that drops or renames a collection."""
    command = dict(elements(entry[b"o"][1]))
    database = text_of(entry[b"ns"]).partition(b".")[0]
    if b"drop" in command:
        kind, collection = b"drop", text_of(command[b"drop"])
    elif b"renameCollection" in command:
        kind, (database, _, collection) = b"rename", text_of(command[b"renameCollection"]).partition(b".")
    else:
        return None
    if database in _SERVERS_OWN or collection.startswith(b"system."):
        return None
    names, to = [database + b"." + collection], []
    if kind == b"rename":
        names.append(text_of(command[b"to"]))
        to.append(element(b"to", _namespace(*names[1].split(b".", 1))))
    event = document(
        element(b"_id", (DOCUMENT, document(element(b"_data", text(_token(entry, 0)))))),
        element(b"operationType", text(kind)),
        element(b"clusterTime", entry[b"ts"]),
        element(b"ns", _namespace(database, collection)),
        *to,
        *_copied(entry, (b"ui", b"collectionUUID"), (b"wall", b"wallTime")),
    )
    return tuple(name.decode() for name in names), event


def _token(entry: Fields, place: int) -> bytes:
    return b"%b%08X" % (beginning_of(_uint64.unpack(entry[b"ts"][1])[0]).encode(), place)


def _namespace(database: bytes, collection: bytes) -> Value:
    return DOCUMENT, document(element(b"db", text(database)), element(b"coll", text(collection)))


def _copied(entry: Fields, *names: tuple[bytes, bytes]) -> list[bytes]:
    """Members of an entry under the names that events have for them, as far as it has them."""
    return [element(name, entry[own]) for own, name in names if own in entry]


def _parts(committing: Fields, lookup: MissingParts) -> Iterator[Fields]:
    """The entries of a transaction from the last one back; none for an entry that commits nothing."""
    command = dict(elements(committing[b"o"][1]))
    if b"commitTransaction" not in command and (
        b"applyOps" not in command or command.keys() & {b"partialTxn", b"prepare"}
    ):
        return
    part = committing
    while True:
        yield part
        time = dict(elements(part[b"prevOpTime"][1]))[b"ts"][1] if b"prevOpTime" in part else _NO_TIME
        if time == _NO_TIME or b"multiOpType" in part:
            return
        part = dict(elements(lookup.entry(_uint64.unpack(time)[0])))


def _operations(part: Fields) -> Iterator[bytes]:
    operations = dict(elements(part[b"o"][1])).get(b"applyOps")
    if operations is not None:
        yield from (value for _, (_, value) in elements(operations[1]))


def _event(operation: Fields, entry: Fields, place: int, lookup: MissingParts) -> Iterator[Event]:
    """The event of an operation: the entry itself, or one of several in it. `place` is the place in it."""
    kind, namespace = _KINDS.get(text_of(operation[b"op"])), text_of(operation[b"ns"])
    database, _, collection = namespace.partition(b".")
    is_own = database in _SERVERS_OWN or collection.startswith(b"system.")
    if kind is None or is_own or operation.get(b"fromMigrate", (0, b""))[1] == _TRUE:
        return
    kind, change = _change(kind, operation, lookup)
    is_transaction = operation is not entry and b"multiOpType" not in entry
    copied = (b"wall", b"wallTime"), *(((b"lsid", b"lsid"), (b"txnNumber", b"txnNumber")) if is_transaction else ())
    event = document(
        element(b"_id", (DOCUMENT, document(element(b"_data", text(_token(entry, place)))))),
        element(b"operationType", text(kind)),
        element(b"clusterTime", entry[b"ts"]),
        element(b"ns", _namespace(database, collection)),
        *_copied(operation, (b"ui", b"collectionUUID")),
        *change,
        *_copied(entry, *copied),
    )
    yield (namespace.decode(),), event


def _change(kind: bytes, operation: Fields, lookup: MissingParts) -> tuple[bytes, list[bytes]]:
    """The type of an operation's event, and the members that tell what it did to which document."""
    content, key = operation[b"o"], operation.get(b"o2", operation[b"o"])
    if kind == b"delete":
        return kind, [element(b"documentKey", content)]
    if kind == b"insert":
        if b"o2" not in operation:
            key = DOCUMENT, document(element(b"_id", dict(elements(content[1]))[b"_id"]))
        return kind, [element(b"documentKey", key), element(b"fullDocument", content)]
    update = dict(elements(content[1]))
    if not update.keys() & {b"$v", b"$set", b"$unset"}:
        return b"replace", [element(b"documentKey", key), element(b"fullDocument", content)]
    did = _description(update)
    change = [element(b"documentKey", key), element(b"updateDescription", (DOCUMENT, did.whole()))]
    now = lookup.document(text_of(operation[b"ns"]).decode(), key[1]) if did.truncated else None
    return kind, change if now is None else [*change, element(b"fullDocument", (DOCUMENT, now))]


@dataclass
class _Description:
    """What an update did, as change streams tell it; names are dotted."""

    updated: list[bytes] = field(default_factory=list)
    removed: list[Value] = field(default_factory=list)
    truncated: list[Value] = field(default_factory=list)

    def whole(self) -> bytes:
        """The description as BSON."""
        return document(
            element(b"updatedFields", (DOCUMENT, document(*self.updated))),
            element(b"removedFields", array(self.removed)),
            element(b"truncatedArrays", array(self.truncated)),
        )

    def of_document(self, difference: bytes, path: bytes) -> None:
        """Adds the difference of a document at a path (empty, or with a dot at its end)."""
        for section, (_, members) in elements(difference):
            if section == b"d":
                self.removed += [text(path + name) for name, _ in elements(members)]
            elif section in (b"u", b"i"):
                self.updated += [element(path + name, value) for name, value in elements(members)]
            else:
                self.of_value(path + section[1:], members)

    def of_value(self, path: bytes, difference: bytes) -> None:
        """Adds the difference of a document or of an array in another one."""
        members = list(elements(difference))
        if not members or members[0][0] != b"a":
            self.of_document(difference, path + b".")
            return
        for name, value in members[1:]:
            if name == b"l":
                size = element(b"field", text(path)) + element(b"newSize", value)
                self.truncated.append((DOCUMENT, document(size)))
            elif name[:1] == b"u":
                self.updated.append(element(b"%b.%b" % (path, name[1:]), value))
            else:
                self.of_value(b"%b.%b" % (path, name[1:]), value[1])


def _description(update: Fields) -> _Description:
    """What the update of an entry did."""
    description, nothing = _Description(), (DOCUMENT, document())
    if b"diff" in update:
        description.of_document(update[b"diff"][1], b"")
    else:
        description.updated = [element(name, value) for name, value in elements(update.get(b"$set", nothing)[1])]
        description.removed = [text(name) for name, _ in elements(update.get(b"$unset", nothing)[1])]
    return description
