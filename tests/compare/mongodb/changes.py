"""Random changes of documents, as commands of the server."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.compare.mongodb.values import Document, Values, to_bson

Command = tuple[str, Document]


class Collection:
    """A collection and the documents that it has by now."""

    def __init__(self, database: str, name: str) -> None:
        self.database, self.name = database, name
        self.documents: list[Document] = []

    @property
    def full_name(self) -> str:
        """The name with the database."""
        return f"{self.database}.{self.name}"


class Changes:
    """Commands that change collections. No document is changed twice between two calls of `settle`.

    A full document is looked up when the update is read, so a second change would show at a time that nobody knows.
    """

    def __init__(self, chance: Random, values: Values) -> None:
        self._chance, self._values = chance, values
        self._last = 0
        self._touched: list[Any] = []

    def settle(self) -> None:
        """All changes so far have been read."""
        self._touched = []

    def insert(self, collection: Collection, count: int = 1) -> Command:
        """Insert new documents."""
        documents = [self._document() for _ in range(count)]
        self._touched += [document["_id"] for document in documents]
        collection.documents += documents
        return collection.database, {"insert": collection.name, "documents": documents}

    def any(self, collection: Collection) -> Command:
        """Insert, update, replace or delete, whatever chance takes."""
        free = [document for document in collection.documents if document["_id"] not in self._touched]
        if not free or self._chance.random() < 0.3:
            return self.insert(collection, self._chance.choice((1, 1, 2)))
        document = self._chance.choice(free)
        self._touched.append(document["_id"])
        if self._chance.random() < 0.2:
            collection.documents.remove(document)
            return collection.database, {"delete": collection.name, "deletes": [{"q": _by_key(document), "limit": 1}]}
        change = self._replacement() if self._chance.random() < 0.2 else self._update(document)
        update = {"q": _by_key(document), "u": change, "upsert": self._chance.random() < 0.1}
        return collection.database, {"update": collection.name, "updates": [update]}

    def _document(self) -> Document:
        self._last += 1
        return {"_id": self._values.key(self._last), **_without_key(self._values.document())}

    def _replacement(self) -> Document:
        return _without_key(
            {name: value for name, value in self._values.document().items() if not name.startswith("$")}
        )

    def _update(self, document: Document) -> Document | list[Document]:
        chance, values = self._chance, self._values
        lists = [name for name, value in document.items() if isinstance(value, list) and _is_plain(name)]
        if lists and chance.random() < 0.5:
            return self._array_update(chance.choice(lists))
        if chance.random() < 0.2:
            return [
                {"$set": {values.name() if chance.random() < 0.5 else "n": {"$literal": values.value()}}},
                {"$unset": "flag"},
            ]
        change: Document = {"$set": {path: values.value() for path in self._paths(document)}}
        gone = {name: "" for name in document if name != "_id" and _is_plain(name) and chance.random() < 0.2}
        removed = {
            name: text for name, text in gone.items() if not any(path.split(".")[0] == name for path in change["$set"])
        }
        if removed:
            change["$unset"] = removed
        if chance.random() < 0.2:
            change["$inc"] = {"counter": 1}
        return change

    def _paths(self, document: Document) -> list[str]:
        """Paths of which none begins with another."""
        paths: dict[str, str] = {}
        for _ in range(self._chance.randrange(1, 4)):
            name = self._chance.choice(
                [*[name for name in document if name != "_id" and _is_plain(name)], self._values.name()]
            )
            if not _is_plain(name):
                continue
            inner = document.get(name)
            names = [one for one in inner if _is_plain(one)] if isinstance(inner, dict) else []
            paths[name] = f"{name}.{self._chance.choice(names)}" if names and self._chance.random() < 0.6 else name
        return list(paths.values()) or ["z"]

    def _array_update(self, name: str) -> Document | list[Document]:
        chance, values = self._chance, self._values
        kind = chance.randrange(6)
        if kind == 0:
            return {"$push": {name: values.value(2)}}
        if kind == 1:
            return {
                "$push": {name: {"$each": [values.value(2), values.value(2)], "$slice": chance.choice((-2, 2, 3, 0))}}
            }
        if kind == 2:
            return {"$pop": {name: chance.choice((1, -1))}}
        if kind == 3:
            return {"$set": {f"{name}.{chance.randrange(6)}": values.value(2)}}
        if kind == 4:
            return {"$pull": {name: {"$type": "string"}}}
        return [{"$set": {name: {"$slice": [f"${name}", chance.randrange(1, 4)]}, "n": 5}}]


def as_step(command: Command) -> list[str]:
    """The step of `script` for a command."""
    database, content = command
    return [database, to_bson(content).hex()]


def _by_key(document: Document) -> Document:
    key = document["_id"]
    return {"_id": {"$eq": key}}


def _is_plain(name: str) -> bool:
    """Whether an update can name the field."""
    return bool(name) and not name.startswith("$") and "." not in name


def _without_key(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "_id"}
