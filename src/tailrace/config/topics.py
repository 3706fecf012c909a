"""Builds names: the topic of each table and control stream, and the names of schemas and fields."""

from __future__ import annotations

import logging
import re

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.option import Option
from tailrace.config.options.events import FIELD_NAME_ADJUSTMENT_MODE, SCHEMA_NAME_ADJUSTMENT_MODE
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.config.options.topics import (
    TOPIC_DELIMITER,
    TOPIC_HEARTBEAT_NAME,
    TOPIC_HEARTBEAT_PREFIX,
    TOPIC_KEY_ENFORCE_UNIQUENESS,
    TOPIC_KEY_FIELD_NAME,
    TOPIC_KEY_FIELD_REGEX,
    TOPIC_KEY_FIELD_REPLACEMENT,
    TOPIC_NAMING_STRATEGY,
    TOPIC_PREFIX,
    TOPIC_REGEX,
    TOPIC_REPLACEMENT,
    TOPIC_TRANSACTION,
)
from tailrace.errors import ConfigError
from tailrace.javalike.patterns import Rewrite
from tailrace.model.table import TableId

_LOG = logging.getLogger(__name__)
_LONGEST = 249  # the brokers' limit
_TOPIC = re.compile(r"[^A-Za-z0-9._-]")
_TOPIC_UNICODE = re.compile(r"[^A-Za-z0-9.-]")


class TopicNaming:
    """The names one configuration gives to topics, schemas and fields.

    `message`, `transaction` and `heartbeat` are those topics; `heartbeat_server` names the server in a heartbeat's key.
    `adds_keys`: tables without a key have one of the field that distinguishes tables, as in the reference.
    """

    def __init__(self, config: Config) -> None:
        prefix, delimiter = config[TOPIC_PREFIX], config[TOPIC_DELIMITER]
        self._prefix, self._delimiter = prefix, delimiter
        self._strategy = config[TOPIC_NAMING_STRATEGY].rpartition(".")[2]
        self._unicode = "Unicode" in self._strategy
        self._with_schema = self._strategy.startswith("Schema")
        self._rewrite = _rewrite(config, TOPIC_REGEX, TOPIC_REPLACEMENT) if "Regex" in self._strategy else None
        self._extra = _key_field(config) if self._rewrite is not None else None
        self._faults = config[COMPAT_FAULTS]
        self.adds_keys = self._extra is not None and Fault.KEYS_OF_NO_COLUMNS in self._faults
        self._schema_mode = config[SCHEMA_NAME_ADJUSTMENT_MODE]
        self._field_mode = config[FIELD_NAME_ADJUSTMENT_MODE]
        self._topics: dict[TableId, str] = {}
        self._owners: dict[str, TableId] = {}
        # The delimiter is not applied, as in the reference.
        self.message = f"{prefix}.message"
        self.transaction = f"{prefix}{delimiter}{config[TOPIC_TRANSACTION]}"
        self.heartbeat = config[TOPIC_HEARTBEAT_NAME] or f"{config[TOPIC_HEARTBEAT_PREFIX]}{delimiter}{prefix}"
        self.heartbeat_server = prefix

    def table(self, table: TableId) -> str:
        """The topic of a table's changes; warns once when it is not the plain name, or another table's too."""
        if table.is_message:
            return self.message
        if table not in self._topics:
            self._topics[table] = self._name(table)
        return self._topics[table]

    def key_field(self, table: TableId, *, of_documents: bool = False) -> tuple[str, str] | None:
        """Name and value of the key field by which the regex strategies distinguish the tables of one topic.

        The reference has one schema for the keys of all documents, so that those of one topic collide (compat.faults).
        """
        if self._extra is None or (of_documents and Fault.COLLIDING_DOCUMENT_KEYS in self._faults):
            return None
        name, rewrite = self._extra
        plain = self._plain(table)
        return name, (rewrite(plain) if rewrite is not None else None) or plain

    def schema_name(self, name: str) -> str:
        """A schema's full name under `schema.name.adjustment.mode`."""
        return adjusted(name, self._schema_mode, dots=True)

    def field_name(self, name: str) -> str:
        """A field's name under `field.name.adjustment.mode`."""
        return adjusted(name, self._field_mode, dots=False)

    def _plain(self, table: TableId) -> str:
        shown = zip(table.shown, table.parts, strict=True)
        parts = [part for kind, part in shown if kind != "schema" or self._with_schema]
        return self._delimiter.join(part for part in (self._prefix, *parts) if part.strip())

    def _name(self, table: TableId) -> str:
        plain = self._plain(table)
        topic = sanitised(plain, unicode=self._unicode)
        if topic != plain:
            _LOG.warning("table %s: topic name %r is not a legal one, using %r", table, plain, topic)
        if self._rewrite is not None:
            return self._rewrite(topic) or topic
        other = self._owners.setdefault(topic, table)
        if other != table:
            _LOG.warning(
                "tables %s and %s share the topic %r: their names differ in illegal characters only",
                *(other, table, topic),
            )
        return topic


def _rewrite(config: Config, regex: Option[str | None], replacement: Option[str | None]) -> Rewrite:
    """What an expression and its replacement do with a text. Raises ConfigError."""
    try:
        return Rewrite.of(config.need(regex), config[replacement] or "")
    except ValueError as error:
        raise ConfigError(str(error), where=replacement.name) from error


def _key_field(config: Config) -> tuple[str, Rewrite | None] | None:
    """Name of the field that is added to keys, and what is done with a table's name; None if none is added."""
    if not config[TOPIC_KEY_ENFORCE_UNIQUENESS]:
        return None
    has_regex = (config[TOPIC_KEY_FIELD_REGEX] or "").strip()
    return config[TOPIC_KEY_FIELD_NAME], _rewrite(
        config, TOPIC_KEY_FIELD_REGEX, TOPIC_KEY_FIELD_REPLACEMENT
    ) if has_regex else None


def sanitised(name: str, *, unicode: bool = False) -> str:
    """A legal topic name: other characters become `_`, or `_uXXXX` with `unicode` (which then escapes `_`, too)."""
    if unicode:
        topic = _TOPIC_UNICODE.sub(lambda match: _escaped(match[0]), name)
    else:
        topic = _TOPIC.sub(lambda match: "_" * len(_units(match[0])), name)
    topic = topic[:_LONGEST]
    return topic.replace(".", "_") if topic in (".", "..") else topic


def adjusted(name: str, mode: str, *, dots: bool) -> str:
    """A name made legal for Avro. `mode` is none, avro or avro_unicode; `dots` allows them after the first place."""
    if mode == "none" or not name:
        return name
    legal = "A-Za-z" if mode == "avro_unicode" else "A-Za-z_"
    first = re.compile(f"[^{legal}]")
    rest = re.compile(f"[^{legal}0-9.]" if dots else f"[^{legal}0-9]")
    if mode == "avro_unicode":
        return first.sub(lambda match: _escaped(match[0]), name[0]) + rest.sub(lambda m: _escaped(m[0]), name[1:])
    head = f"_{name[0]}" if name[0].isascii() and name[0].isdigit() else first.sub("_", name[0])
    return head + rest.sub(lambda match: "_" * len(_units(match[0])), name[1:])


def _units(char: str) -> list[int]:
    """The UTF-16 units of a character: the reference counts in them."""
    data = char.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def _escaped(char: str) -> str:
    digits = [f"{unit:x}" for unit in _units(char)]
    return "".join(f"_u00{text}" if len(text) <= 2 else f"_u{text}" for text in digits)
