"""Converts positions in a MongoDB log to Debezium's offsets, and back.

Debezium stores the cluster time as `sec` and `ord`, and the resume token: the document's BSON in base64, or, in earlier
versions, its text.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import bson

from tailrace.config import Config
from tailrace.config.options.topics import TOPIC_PREFIX
from tailrace.connectors.debezium_offset import PROPERTY, OffsetEntry, lacking, number, taken_over
from tailrace.connectors.mongodb.client import Client
from tailrace.connectors.mongodb.log.stream import opened
from tailrace.connectors.mongodb.position import beginning_of, of_token, parse, start_options, time_of
from tailrace.errors import ConfigError

_SECONDS, _ORDER, _TOKEN = "sec", "ord", "resume_token"


def position_of(config: Config) -> str | None:
    """The position of `offset.takeover`, None if that is not set. Raises ConfigError, OffsetError."""
    entries = taken_over(config)
    if not entries:
        return None
    if len(entries) > 1:
        what = f"there are {len(entries)} offsets, one for each replica set, as earlier versions of Debezium store them"
        remedy = "let Debezium 2.6 or newer run once with capture.mode and the connection string of the whole cluster"
        raise ConfigError(what, where=PROPERTY, remedy=remedy)
    (entry,) = entries
    token = entry.offset.get(_TOKEN)
    if token:
        return parse(_of_text(str(token)))
    seconds = number(entry, _SECONDS)
    if not seconds:
        raise lacking(_SECONDS)
    return beginning_of(seconds << 32 | (number(entry, _ORDER) or 0))


def _of_text(token: str) -> str:
    try:
        return of_token(bson.decode(base64.b64decode(token, validate=True)))
    except (binascii.Error, bson.errors.InvalidBSON, KeyError):
        return token


def entries_of(client: Client, config: Config, position: str) -> list[OffsetEntry]:
    """The position as Debezium's offset, which has a resume token: a time alone it takes for one that is lost."""
    time, token = time_of(position), start_options(position).get("resumeAfter") or _token_at(client, config, position)
    offset = {_SECONDS: time >> 32, _ORDER: time & 0xFFFFFFFF, _TOKEN: base64.b64encode(bson.encode(token)).decode()}
    return [OffsetEntry({"server_id": config[TOPIC_PREFIX]}, offset)]


def _token_at(client: Client, config: Config, position: str) -> dict[str, Any]:
    """The resume token of a time: a stream that is opened there has it before its first event."""
    token: dict[str, Any] = bson.decode(opened(client, config, position, 0)["postBatchResumeToken"].raw)
    return token
