"""Logical messages (pg_logical_emit_message) as changes of a table without a name."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config import Config
from tailrace.config.filters import Rule
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.connectors.postgres.log.protocol.framing import Ints
from tailrace.connectors.postgres.log.protocol.pgoutput import Messages
from tailrace.connectors.postgres.options import MESSAGE_PREFIX_EXCLUDE_LIST, MESSAGE_PREFIX_INCLUDE_LIST
from tailrace.connectors.types.binary import binary_type
from tailrace.connectors.value_type import ValueType, converted, text_type
from tailrace.model.arrow import flags, mask
from tailrace.model.table import Column, TableId, TableSchema


@dataclass(frozen=True, slots=True)
class LogicalMessages:
    """Which messages are captured, and what their table looks like: the columns `prefix`, its key, and `content`."""

    prefixes: Rule
    content: ValueType
    table: TableSchema

    @staticmethod
    def of(config: Config) -> LogicalMessages:
        """What message.prefix.*.list and binary.handling.mode say."""
        content = binary_type(config)
        prefix = text_type()
        columns = tuple(
            Column(name, kind.schema.with_(optional=True), kind.arrow)
            for name, kind in (("prefix", prefix), ("content", content))
        )
        table = TableSchema(TableId(config[DATABASE_DBNAME], "", ""), columns, ("prefix",), ())
        rule = Rule(config[MESSAGE_PREFIX_INCLUDE_LIST], config[MESSAGE_PREFIX_EXCLUDE_LIST])
        return LogicalMessages(rule, content, table)

    def captured(self, messages: Messages) -> Messages:
        """The messages whose prefix is captured."""
        encoded = messages.prefix.dictionary_encode()
        prefixes = encoded.dictionary.to_pylist()
        wanted = [self.prefixes.includes(prefix) for prefix in prefixes]
        keep = flags(pa.array(wanted, pa.bool_()).take(encoded.indices))
        if keep.all():
            return messages
        prefix, content = messages.prefix.filter(mask(keep)), messages.content.filter(mask(keep))
        return Messages(messages.index[keep], messages.transactional[keep], prefix, content)

    def images(self, messages: Messages) -> pa.StructArray:
        """Prefix and content as rows of the table."""
        prefix = converted(messages.prefix, text_type(), "prefix of a logical message")
        arrays = [prefix, self.content.convert(messages.content)]
        return pa.StructArray.from_arrays(arrays, fields=list(self.table.row_type))


def apart(messages: Messages, times: Ints, source: pa.StructArray) -> tuple[Ints, pa.StructArray]:
    """Messages outside any transaction have no xid, and the time they are read at."""
    if messages.transactional.all():
        return times, source
    times = np.where(messages.transactional, times, time.time_ns() // 1000)
    xid = pc.if_else(mask(messages.transactional), source.field(0), pa.scalar(None, pa.int64()))
    arrays = [xid, *(source.field(place) for place in range(1, source.type.num_fields))]
    return times, pa.StructArray.from_arrays(arrays, fields=list(source.type))
