"""Loads plug-ins that properties name: Python entry points, where Debezium loads Java classes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from tailrace.config.resolve import Config, Problem
from tailrace.errors import ConfigError

SNAPSHOTTERS = "tailrace.snapshotters"
LOCKS = "tailrace.snapshot_locks"
QUERIES = "tailrace.snapshot_queries"
CONVERTERS = "tailrace.converters"
# The modes that may be `custom`, each with the group its code is found in.
_MODES = (("snapshot.mode", SNAPSHOTTERS), ("snapshot.locking.mode", LOCKS), ("snapshot.query.mode", QUERIES))


def custom(config: Config, mode: str) -> Any:
    """What the factory gives that `<mode>.custom.name` names, called with the connector's properties.

    None if the mode is not `custom`. Raises ConfigError where there is no such entry point.
    """
    if config.text(mode) != "custom":
        return None
    name = f"{mode}.custom.name"
    return load(dict(_MODES)[mode], config.text(name), name)(dict(config.given))


def converters(config: Config) -> list[tuple[str, Any]]:
    """The converters that `converters` lists, by name: each factory is called with the settings `<name>.*`."""
    made = []
    for name in config.names("converters"):
        prefix = f"{name}."
        own = {key.removeprefix(prefix): text for key, text in config.given.items() if key.startswith(prefix)}
        made.append((name, load(CONVERTERS, own.get("type", ""), f"{name}.type")(own)))
    return made


@cache
def load(group: str, name: str, where: str) -> Any:
    """The object that an installed package offers under a name. Raises ConfigError."""
    known = entry_points(group=group)
    if name not in known.names:
        offered = ", ".join(sorted(known.names)) or "none"
        raise ConfigError(
            f"there is no Python entry point {name!r} in the group {group} (there: {offered})",
            where=where,
            remedy="install the package that has it, here and where Spark's workers run; Java classes cannot be loaded",
        )
    try:
        return known[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the entry point {known[name].value} cannot be loaded: {error}", where=where) from error


def check_entry_points(config: Config) -> Iterator[Problem]:
    """Names that are missing, or that no installed package offers."""
    named = [(f"{mode}.custom.name", group) for mode, group in _MODES if config.values.get(mode) == "custom"]
    if "converters" in config.values:
        named += [(f"{name}.type", CONVERTERS) for name in config.names("converters")]
    for name, group in named:
        given = config.given.get(name, "").strip()
        if not given:
            yield Problem(name, "A value is required", f"name an entry point of the group {group}")
            continue
        try:
            load(group, given, name)
        except ConfigError as error:
            yield Problem(name, error.what, error.remedy)
