"""TimezoneConverter: converts times of events to another zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa

from tailrace.config.kinds import NAMES, TEXT
from tailrace.events.records import RecordPart, Records, by_topic, struct
from tailrace.model.odd_times import INFINITIES
from tailrace.transforms.fields import with_default
from tailrace.transforms.settings import Given, setting
from tailrace.transforms.timezone_rules import EXCLUDE, INCLUDE, Choice, Rules, is_list

OPTIONS = (
    _CONVERTED_TIMEZONE := setting("converted.timezone", TEXT, required=True),
    _INCLUDE_LIST := setting("include.list", NAMES),
    _EXCLUDE_LIST := setting("exclude.list", NAMES),
)
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?")
_STAMP = re.compile(r"([+-]?\d+)-(\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d(?::?\d\d)?)")
_CLOCK = re.compile(r"(\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d(?::?\d\d)?)")
# Units a second of the types that count from 1970.
_MILLIS, _MICROS, _NANOS = 1000, 1_000_000, 1_000_000_000
_UNITS = {
    "io.debezium.time.MicroTimestamp": _MICROS,
    "io.debezium.time.NanoTimestamp": _NANOS,
    "io.debezium.time.Timestamp": _MILLIS,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
}
_EPOCH_FIELDS = {"ts_ms": _MILLIS, "ts_us": _MICROS, "ts_ns": _NANOS}
_INFINITE = {
    _MILLIS: frozenset(INFINITIES["ms"].values()),
    _MICROS: frozenset(INFINITIES["us"].values()),
    _NANOS: frozenset(INFINITIES["ns"].values()),
}
# The calendar repeats after 400 years: years beyond Python's are looked up in years that are not.
_CYCLE = 146097 * 86400
_FIRST, _LAST = -62135510400, 253370764800  # 0001-01-02 and 9999-01-01, in seconds
_LONGEST = 2**63


@dataclass(frozen=True)
class TimezoneConverter:
    """Moves times of rows, and those of the source block where they are named, to a zone.

    Works on each different value of a column once, in Python.
    """

    zone: tzinfo
    rules: Rules | None

    @staticmethod
    def of(given: Given) -> TimezoneConverter:
        """From the transform's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        include, exclude = config[_INCLUDE_LIST], config[_EXCLUDE_LIST]
        for name, items in (("include.list", include), ("exclude.list", exclude)):
            if items and not is_list(items):
                raise given.problem(
                    name, f"Invalid {name.replace('.', ' ')} format", "write source:table:field, topic:name:field"
                )
        if include and exclude:
            message = "Both include and exclude lists are specified. Please specify only one."
            raise given.problem("include.list", message)
        zone = _zone(config[_CONVERTED_TIMEZONE].strip())
        if zone is None:
            raise given.problem(
                "converted.timezone", "Invalid timezone format", "write Europe/Paris or an offset such as +08:00"
            )
        rules = Rules.of(INCLUDE, include) if include else Rules.of(EXCLUDE, exclude) if exclude else None
        return TimezoneConverter(zone, rules)

    def apply(self, records: Records) -> list[Records]:
        """Change events with their times converted; others as they are."""
        events, nulls = records.with_value()
        if not len(events) or events.value is None or not events.value.is_envelope:
            return [records]
        return [nulls, *(self._converted(group, topic) for topic, group in by_topic(events))]

    def _converted(self, records: Records, topic: str) -> Records:
        assert records.value is not None
        value = records.value
        source = value.field("source") if value.has("source") else None
        table = source.field("table").values[0].as_py() if source is not None and source.has("table") else None
        choice = Choice() if self.rules is None else self.rules.choice(table, topic)
        if choice is None:
            return records
        fields = []
        for name, part in value.fields():
            # A document's row images are texts, which the reference leaves as they are.
            is_row = name in ("before", "after", "source") and part.schema.type == "struct"
            mine = choice.of(name) if is_row else None
            fields.append((name, part if mine is None else self._struct(part, mine, name == "source")))
        return records.with_(value=struct(value.schema, fields, len(records)))

    def _struct(self, part: RecordPart, choice: Choice, is_source: bool) -> RecordPart:
        absent = part.values.is_null()
        fields = [
            (name, self._field(name, field, is_source) if choice.takes(name) else field)
            for name, field in part.fields()
        ]
        return struct(part.schema, fields, len(part.values), absent if absent.true_count else None)

    def _field(self, name: str, part: RecordPart, is_source: bool) -> RecordPart:
        convert = self._conversion(part.schema.name, name if is_source else "")
        return part if convert is None else RecordPart(part.schema, _mapped(with_default(part).values, convert))

    def _conversion(self, schema: str | None, epoch: str) -> Callable[[Any], Any] | None:
        if schema == "io.debezium.time.ZonedTimestamp":
            return self._stamp
        if schema == "io.debezium.time.ZonedTime":
            return self._clock
        if schema in _UNITS:
            return lambda value: self._local(value, _UNITS[schema])
        if schema is None and epoch in _EPOCH_FIELDS:
            return lambda value: self._instant(value, _EPOCH_FIELDS[epoch])
        return None

    def _local(self, value: int, per: int) -> int:
        """A time without a zone, taken to be of the zone, as an instant; one out of range and infinity stay."""
        if value in _INFINITE[per]:
            return value
        seconds, rest = divmod(value, per)
        moved = (seconds - self._seconds(seconds)) * per + rest
        return moved if -_LONGEST <= moved < _LONGEST else value

    def _instant(self, value: int, per: int) -> int:
        """An instant as the zone's clock shows it."""
        when = datetime.fromtimestamp(value // per, timezone.utc)
        return value + _whole(when.astimezone(self.zone).utcoffset()) * per

    def _seconds(self, local: int) -> int:
        """The zone's offset at a local time, of 1970's clock."""
        late = max(0, -((_LAST - 1 - local) // _CYCLE))
        early = max(0, -((local - _FIRST) // _CYCLE))
        return self._offset(datetime(1970, 1, 1) + timedelta(seconds=local + (early - late) * _CYCLE))

    def _offset(self, when: datetime) -> int:
        """The zone's offset at a local time; of two, and where there is none, the one before the change, as in Java."""
        return _whole(when.replace(tzinfo=self.zone).utcoffset())

    def _stamp(self, text: str) -> str:
        match = _STAMP.fullmatch(text)
        if match is None:
            return text  # infinity, at which the reference stops
        year, rest, fraction, offset = int(match[1]), match[2], match[3], match[4]
        near = year if 2 <= year <= 9998 else year % 400 + (2400 if year > 2 else 400)
        when = datetime.strptime(f"{near:04d}-{rest if len(rest) > 11 else rest + ':00'}", "%Y-%m-%dT%H:%M:%S")
        # The reference looks the offset up at the clock of the time as it was.
        zone = self._offset(when)
        moved = when + timedelta(seconds=zone - _seconds_of(offset))
        return f"{_year(moved.year + year - near)}{moved:-%m-%dT%H:%M:%S}{_fraction(fraction)}{_text(zone)}"

    def _clock(self, text: str) -> str:
        match = _CLOCK.fullmatch(text)
        if match is None:
            return text
        clock, fraction, offset = match.groups()
        when = datetime.strptime(f"2000-01-01 {clock if len(clock) > 5 else clock + ':00'}", "%Y-%m-%d %H:%M:%S")
        # A clock has no date: the offset is today's, as in the reference.
        zone = _whole(datetime.now(timezone.utc).astimezone(self.zone).utcoffset())
        moved = when + timedelta(seconds=zone - _seconds_of(offset))
        return f"{moved:%H:%M:%S}{_fraction(fraction)}{_text(zone)}"


def _zone(name: str) -> tzinfo | None:
    if _OFFSET.fullmatch(name):
        seconds = _seconds_of(name)
        return timezone(timedelta(seconds=seconds)) if abs(seconds) <= 18 * 3600 else None
    return ZoneInfo(name) if name in available_timezones() else None


def _mapped(values: pa.Array, convert: Callable[[Any], Any]) -> pa.Array:
    codes = values.dictionary_encode()
    converted = [None if value is None else convert(value) for value in codes.dictionary.to_pylist()]
    return pa.array(converted, values.type).take(codes.indices)


def _whole(offset: timedelta | None) -> int:
    return 0 if offset is None else round(offset.total_seconds())


def _seconds_of(offset: str) -> int:
    """The seconds of `+01:00`, or of `Z`."""
    digits = re.sub(r"\D", "", offset)
    hours, minutes, seconds = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
    return (3600 * hours + 60 * minutes + seconds) * (-1 if offset.startswith("-") else 1)


def _text(offset: int) -> str:
    """An offset as ISO 8601 has it, with seconds where it has some."""
    if offset == 0:
        return "Z"
    minutes, seconds = divmod(abs(offset), 60)
    text = f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def _fraction(digits: str | None) -> str:
    """The fraction of a second without zeros at its end."""
    digits = (digits or "").rstrip("0")
    return f".{digits}" if digits else ""


def _year(year: int) -> str:
    return f"+{year}" if year > 9999 else f"-{-year:04d}" if year < 0 else f"{year:04d}"
