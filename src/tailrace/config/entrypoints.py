"""Loads plug-ins that properties name: Python entry points, where Debezium loads Java classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from tailrace.config.option import Option
from tailrace.config.options.events import CONVERTER_NAMES, TYPE_OF_PART
from tailrace.config.plugin_groups import CONVERTERS, LOCKS, QUERIES, SNAPSHOTTERS
from tailrace.config.resolve import Config, Problem
from tailrace.errors import ConfigError

# The modes that may be `custom`, each with the group its code is found in.
_MODES = (("snapshot.mode", SNAPSHOTTERS), ("snapshot.locking.mode", LOCKS), ("snapshot.query.mode", QUERIES))


def custom(config: Config, mode: Option[str], named: Option[str | None], group: str) -> Any:
    """What the factory of the group gives that a property names, called with the connector's properties.

    None if the mode is not `custom`. Raises ConfigError where there is no such entry point.
    """
    if config[mode] != "custom":
        return None
    return load(group, config.need(named), named.name)(dict(config.given))


def converters(config: Config) -> list[tuple[str, Any]]:
    """The converters that `converters` lists, by name: each factory is called with the settings `<name>.*`."""
    made = []
    for name in config[CONVERTER_NAMES]:
        prefix = f"{name}."
        own = {key.removeprefix(prefix): text for key, text in config.given.items() if key.startswith(prefix)}
        kind = TYPE_OF_PART.named(name)
        made.append((name, load(CONVERTERS, config.get(kind, ""), kind.name)(own)))
    return made


@cache
def load(group: str, name: str, where: str) -> Any:
    """The object that an installed package offers under a name. Raises ConfigError."""
    entries = entry_points(group=group)
    if name not in entries.names:
        offered = ", ".join(sorted(entries.names)) or "none"
        raise ConfigError(
            f"there is no Python entry point {name!r} in the group {group} (there: {offered})",
            where=where,
            remedy="install the package that has it, here and where Spark's workers run; Java classes cannot be loaded",
        )
    try:
        return entries[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the entry point {entries[name].value} cannot be loaded: {error}", where=where) from error


def check_entry_points(config: Config) -> Iterator[Problem]:
    """Names that are missing, or that no installed package offers."""
    named = [(f"{mode}.custom.name", group) for mode, group in _MODES if config.values.get(mode) == "custom"]
    if CONVERTER_NAMES in config:
        named += [(TYPE_OF_PART.named(name).name, CONVERTERS) for name in config[CONVERTER_NAMES]]
    for name, group in named:
        given = config.given.get(name, "").strip()
        if not given:
            yield Problem(name, "A value is required", f"name an entry point of the group {group}")
            continue
        try:
            load(group, given, name)
        except ConfigError as error:
            yield Problem(name, error.what, error.remedy)
