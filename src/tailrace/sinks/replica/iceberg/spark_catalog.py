"""Gives a Spark session the catalog of a replica's Iceberg tables, and says what it lacks for that."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyiceberg.utils.config import Config
from pyspark.errors import PySparkException

from tailrace.errors import ConfigError, TailraceError
from tailrace.sinks.replica.iceberg.java_properties import (
    CATALOG,
    CLASS,
    PREFIX,
    driver,
    is_known,
    spark_properties,
)
from tailrace.sinks.replica.merge import quoted
from tailrace.spark.java_errors import JAVA_IS_AWAY, summary, with_causes
from tailrace.spark.sessions import has_java
from tailrace.spark.versions import demand_iceberg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Which catalog a session has, by a hash: its properties have passwords.
_KNOWN = "spark.tailrace.iceberg.catalog"
_OF_SPARK: tuple[type[Exception], ...] = (PySparkException, *JAVA_IS_AWAY)
_WITHOUT_CLASS = ("ClassNotFound", "CATALOG_NOT_FOUND", "Cannot find catalog plugin class")
_WITHOUT_DRIVER = "No suitable driver"


def in_spark(uri: str, name: str, branch: str) -> str:
    """The name of a table's branch in Spark's SQL; `uri` is that of the lake."""
    levels = uri.removesuffix(f".{name}").split(".")
    return ".".join(map(quoted, (CATALOG, *levels, name, f"branch_{branch}")))


def configure(session: SparkSession, options: Mapping[str, str]) -> None:
    """Give a session the catalog. Raises ConfigError where it has another one already, or Java none such."""
    # pyiceberg's own settings add to those given; what Java has nothing for is pyiceberg's alone.
    settings = (Config().get_catalog_config(CATALOG) or {}).items()
    try:
        properties = spark_properties({**{name: str(text) for name, text in settings if is_known(name)}, **options})
    except ValueError as error:
        raise ConfigError(str(error), where="sink.replica") from error
    digest = hashlib.sha256(repr(sorted(properties.items())).encode()).hexdigest()
    configured = session.conf.get(_KNOWN, None)
    if configured == digest:
        return
    if configured is not None:
        raise ConfigError(
            f"this session has another Iceberg catalog of the name {CATALOG} already",
            where="engine: spark",
            remedy="write each catalog by a streaming query, or a session (`spark.newSession()`), of its own",
        )
    for name, text in properties.items():
        session.conf.set(f"{PREFIX}.{name}" if name else PREFIX, text)
    session.conf.set(_KNOWN, digest)


def demand(session: SparkSession, options: Mapping[str, str], namespace: str) -> None:
    """Raises TailraceError for a Spark without a runtime of Iceberg, a session that lacks it, and a wrong catalog."""
    package = demand_iceberg(session.version)
    # A session of its own, as others may have other catalogs.
    own = session.newSession() if has_java(session) else session
    configure(own, options)
    try:
        own.catalog.databaseExists(".".join(map(quoted, (CATALOG, *namespace.split(".")))))
    except _OF_SPARK as error:
        what, remedy = _reason(error, options, package)
        raise TailraceError(what, where="engine: spark", remedy=remedy) from error


def _reason(error: Exception, options: Mapping[str, str], package: str) -> tuple[str, str]:
    """Why Spark cannot open the catalog, and what to do."""
    text, jdbc = with_causes(error), driver(options)
    if CLASS in text and any(each in text for each in _WITHOUT_CLASS):
        packages = package if jdbc is None else f"{package},{jdbc}"
        return (
            "the session lacks Iceberg's runtime for Spark",
            f"set `spark: {{spark.jars.packages: '{packages}'}}`; or leave engine out, and pyiceberg writes the "
            "tables without a jar",
        )
    if _WITHOUT_DRIVER in text:
        return (
            "the session lacks the JDBC driver of the catalog's database",
            f"add {jdbc} to `spark.jars.packages` in `spark`; or leave engine out",
        )
    return (
        f"Spark cannot open the catalog: {summary(error)}",
        f"correct `catalog`, or add what Iceberg's Java code needs as `{PREFIX}.*` in `spark`",
    )
