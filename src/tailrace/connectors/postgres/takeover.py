"""Converts positions in PostgreSQL's log to Debezium's offsets, and back.

Debezium's `lsn` is that of the change it sent last. Transactions are sent in the order of their commits, so it has sent
all whose commit lies before that change: there the log continues, with the whole transaction of the change.
"""

from __future__ import annotations

from tailrace.config import Config
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.connectors.debezium_offset import PROPERTY, OffsetEntry, lacking, number, taken_over
from tailrace.connectors.postgres.options import SLOT_TAKEOVER
from tailrace.connectors.postgres.position import format_lsn
from tailrace.errors import ConfigError, OffsetError

# The newest position that Debezium has confirmed, or will confirm.
_LSNS = ("lsn_proc", "lsn")


def last_sent(config: Config) -> int | None:
    """The position of the change that Debezium sent last; None without `offset.takeover`. Raises ConfigError."""
    entries = taken_over(config)
    if not entries:
        return None
    if not config[SLOT_TAKEOVER]:
        remedy = "set slot.takeover=true: the slot that Debezium created is to be this pipeline's"
        raise ConfigError("the log continues from Debezium's slot", where=PROPERTY, remedy=remedy)
    lsn = number(entries[0], *_LSNS)
    if lsn is None:
        raise lacking("lsn")
    return lsn


def check_kept(sent: int, restart: int | None, slot: str) -> None:
    """Raises OffsetError if the slot has moved beyond Debezium's offset: nobody has sent what lies between."""
    if restart is not None and restart > sent:
        raise OffsetError(
            f"the slot has moved beyond Debezium's offset: it begins at {format_lsn(restart)}, and Debezium has sent "
            f"the log up to {format_lsn(sent)}",
            where=f"slot {slot}",
            remedy="take the newest offset of the connector; or remove offset.takeover and set snapshot.mode=initial, "
            "which reads all tables",
        )


def without_slot(slot: str) -> OffsetError:
    """The error where Debezium's slot is gone: nobody knows what it has not sent."""
    return OffsetError(
        "the slot does not exist, so changes since Debezium stopped are lost",
        where=f"slot {slot}",
        remedy="set slot.name to Debezium's; or remove offset.takeover and set snapshot.mode=initial, which reads all "
        "tables",
    )


def entries_of(config: Config, lsn: int) -> list[OffsetEntry]:
    """The position as Debezium's offset: without the field of a change, nothing is skipped from there on."""
    return [OffsetEntry({"server": config[TOPIC_PREFIX]}, {"lsn": lsn})]
