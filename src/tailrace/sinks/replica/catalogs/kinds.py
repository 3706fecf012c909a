"""The catalogues that can be had, the settings that each takes, and the one that settings describe."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tailrace.errors import ConfigError

if TYPE_CHECKING:  # loads deltalake, which a pipeline file of another sink does without
    from tailrace.sinks.replica.catalogs.catalog import Catalog

# By type: the properties that it takes, those that it needs, the levels of its namespace, and the package that it uses.
_AWS = ("region", "endpoint", "id", "profile-name", "access-key-id", "secret-access-key", "session-token")
TYPES: Mapping[str, tuple[frozenset[str], frozenset[str], int, str]] = {
    "hive": (frozenset({"uri", "ugi", "location"}), frozenset({"uri"}), 1, "thrift"),
    "glue": (frozenset({*(f"glue.{name}" for name in _AWS), "location"}), frozenset(), 1, "boto3"),
    "unity": (frozenset({"uri", "token", "location"}), frozenset({"uri"}), 2, "httpx"),
}


def problem(properties: Mapping[str, object], namespace: str | None) -> str | None:
    """What is wrong of the settings of a catalogue of Delta tables."""
    kind = str(properties.get("type"))
    if kind not in TYPES:
        return f"catalog.type should be {', '.join(sorted(TYPES))}; Delta tables are registered in no other catalog"
    names, needed, levels, _ = TYPES[kind]
    for name in sorted(properties.keys() - {"type", *names}):
        near = difflib.get_close_matches(name, names, n=1)
        return f"catalog.{name}: unknown key" + (f"; did you mean {near[0]}?" if near else "")
    if missing := sorted(needed - properties.keys()):
        return f"catalog.{missing[0]} is missing, which a catalog of type {kind} needs"
    if namespace is None or len(namespace.split(".")) != levels:
        shape = "the database" if levels == 1 else "catalog and schema with a dot between them"
        return f"namespace is needed beside a catalog of type {kind}: {shape}"
    return None


def catalog_of(properties: Mapping[str, str], namespace: str) -> Catalog:
    """The catalogue of valid settings; it connects on first use. Raises ConfigError where its package is missing."""
    kind = properties["type"]
    package = TYPES[kind][-1]
    if find_spec(package) is None:
        raise ConfigError(
            f"a catalog of type {kind} needs the package {package}",
            where="sink.replica.catalog",
            remedy=f"pip install 'tailrace[{kind}]'",
        )
    if kind == "hive":
        from tailrace.sinks.replica.catalogs.hive import Hive  # each loads a package that is optional

        return Hive(properties["uri"], namespace, properties.get("ugi"))
    if kind == "glue":
        from tailrace.sinks.replica.catalogs.glue import Glue

        return Glue(properties, namespace)
    from tailrace.sinks.replica.catalogs.unity import Unity

    return Unity(properties["uri"], namespace, properties.get("token"))
