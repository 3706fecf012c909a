"""All properties of the converters: each setting below the name of every converter that has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tailrace.config.option import Option, OptionStatus
from tailrace.config.options import converters as declared
from tailrace.config.options.apicurio import OF_APICURIO
from tailrace.config.options.cloud_events import SETTINGS as OF_CLOUD_EVENTS


def converters() -> tuple[Option[object], ...]:
    """The converters of keys, values and headers with their settings."""
    return (*_converter("key", "keys"), *_converter("value", "values"), *_headers())


def _headers() -> Iterator[Option[object]]:
    yield declared.HEADER_CONVERTER
    yield from _json(declared.HEADER_CONVERTER.name, "headers")


def _converter(part: str, plural: str) -> Iterator[Option[object]]:
    """The converter of keys or values and its settings."""
    name = declared.CONVERTER[part].name
    yield declared.CONVERTER[part]
    yield from _json(name, plural)
    for option in (*_of_registries(part), *declared.OF_JSON_SCHEMA):
        yield option.within(name)
    if part == "value":
        for option in OF_CLOUD_EVENTS:
            yield option.within(name)
        yield from _json(f"{name}.json", "CloudEvents")
        for option in _of_registries(part):
            yield _inner(option, "CloudEvents").within(f"{name}.avro")
    delegate = declared.DELEGATE_CONVERTER.within(name)
    yield delegate
    yield from _json(delegate.name, f"{plural} that are no bytes")
    for option in (*_of_registries(part), *declared.OF_JSON_SCHEMA):
        yield _inner(option, "BinaryDataConverter").within(delegate.name)


def _of_registries(part: str) -> tuple[Option[object], ...]:
    """The settings of converters with schema registries."""
    of_part = (declared.SUBJECT_NAME_STRATEGY[part], declared.SCHEMA_ID_SERIALIZER[part])
    return (
        *declared.OF_AVRO,
        declared.SCHEMA_REGISTRY_URL,
        *of_part,
        *declared.OF_CONFLUENT,
        *OF_APICURIO,
    )


def _inner(option: Option[object], outer: str) -> Option[object]:
    """A setting of a converter that another one calls, and gives no headers to."""
    if option.name.endswith(".headers.enabled"):
        note = f"within {outer} the ids stand before the datums"
        return replace(option, status=OptionStatus.CONNECT, note=note)
    return replace(option, help=f"{outer}: {option.help}")


def _json(name: str, plural: str) -> Iterator[Option[object]]:
    """The settings of a JSON converter."""
    for option in declared.OF_JSON:
        yield replace(option, help=option.help.format(plural)).within(name)


def is_of_delegate(option: Option[object]) -> bool:
    """Whether it is a setting of the converter that BinaryDataConverter calls, which has those of it alone."""
    return f".{declared.DELEGATE_CONVERTER.name}." in option.name
