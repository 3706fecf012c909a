"""The data sources that Spark loads. Spark imports this at its first look-up of any format, so it imports no driver."""

from __future__ import annotations

import json
import signal
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from pyspark.sql.types import StructType

from tailrace.config.options.spark import SHAPE, TAILRACE_PROPERTIES
from tailrace.config.resolve import log_warnings
from tailrace.connectors import registry
from tailrace.errors import ConfigError
from tailrace.override import override
from tailrace.spark.logs import write_to_stderr
from tailrace.spark.recipe import Recipe
from tailrace.spark.versions import TELLS_START, DataSource, DataSourceReader, DataSourceStreamReader, demand

if TYPE_CHECKING:
    from tailrace.connectors.ports import ConnectorPackage
    from tailrace.spark.older_reader import Pace

STEPS_OPTION = "tailrace.steps"
PROPERTIES_OPTION = TAILRACE_PROPERTIES.name
# Seconds between the starts of two micro-batches that read the log alone.
PAUSE_OPTION = "tailrace.pause.seconds"
# How the query goes on, for a Spark that does not say it: see Pace in older_reader.py.
PACE_OPTION = "tailrace.pace"
# The path of a LatestFile, for the same Spark.
LATEST_OPTION = "tailrace.latest.file"


class ChangeDataSource(DataSource):
    """The committed changes of one kind of database as Debezium's events; a subclass says which connector reads them.

    Options are the properties of Debezium's connector, as they are; Spark ignores the case of option names, so names
    that need it (a table in a property name) go into ``tailrace.properties``, a JSON object. ``shape`` chooses the
    rows: ``kafka`` (default), ``event``, ``table``, ``arrow``. ``readStream`` takes the snapshot and continues with the
    log; ``read`` is the snapshot alone.

    Spark finds formats in top-level modules `pyspark_*`, and pickles this class by its name there. So each connector
    has such a module with a subclass `DefaultSource`.
    """

    connector: ClassVar[str]

    def __init__(self, options: Mapping[str, str]) -> None:
        write_to_stderr()
        demand()
        self.properties = properties(options)
        self.steps = options.get(STEPS_OPTION) or "[]"
        self.pause_seconds = float(options.get(PAUSE_OPTION) or 0)
        self.pace = cast("Pace | None", options.get(PACE_OPTION))
        self.latest_file = options.get(LATEST_OPTION)
        # Drawn here, not in a reader: Spark makes readers again for every batch. It is header __debezium.context.runId.
        self.run_id = str(uuid.uuid4())

    @classmethod
    @override
    def name(cls) -> str:
        """The format's name."""
        return registry.named(cls.connector).format

    @override
    def schema(self) -> StructType:
        """The columns of the chosen shape. `table` asks the server for the table's columns."""
        from tailrace.spark.schemas import fixed_schema, spark_schema

        recipe = self._recipe()
        fixed = fixed_schema(recipe.config)
        if fixed is not None:
            return fixed
        capture = recipe.capture()
        try:
            return spark_schema(capture)
        finally:
            capture.close()

    @override
    def reader(self, schema: StructType) -> DataSourceReader:
        """The bounded read: the captured tables as of now."""
        from tailrace.spark.reader import SnapshotReader

        return SnapshotReader(self._recipe(schema), schema, self.steps, self.run_id)

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The stream: snapshot as `snapshot.mode` says, then the log."""
        _end_by_sigterm()
        recipe, stop_property = self._recipe(schema), self._package.stop_property
        if stop_property is not None and recipe.config[stop_property]:
            raise ConfigError(
                "a query cannot distinguish a stop from a failure, and after a failure it needs what would be dropped",
                where=stop_property.name,
                remedy="run the pipeline by `tailrace run`, or leave the property out and use `tailrace drop`",
            )
        if not TELLS_START:
            from tailrace.spark.older_reader import OlderReader

            settings = (self.pause_seconds, self.pace, self.latest_file)
            return OlderReader(recipe, schema, self.steps, self.run_id, *settings)
        from tailrace.spark.reader import ChangeReader

        return ChangeReader(recipe, schema, self.steps, self.run_id, self.pause_seconds)

    @property
    def _package(self) -> ConnectorPackage:
        return registry.named(self.connector).load()

    def _recipe(self, schema: StructType | None = None) -> Recipe:
        from tailrace.transforms.registry import CHECKS

        package = self._package
        write_to_stderr()
        config = package.resolve(self.properties, CHECKS)
        log_warnings(config)
        if schema is not None and config[SHAPE] == "table":
            from tailrace.spark.schemas import row_type

            config = package.resolve(package.with_columns(self.properties, row_type(schema)), CHECKS)
        return Recipe(self.connector, replace(config, steps=self.steps))


def _end_by_sigterm() -> None:
    """Have SIGTERM end this process: Spark stops its planner by it. Java ignores it in a pipeline, and so would we."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def properties(options: Mapping[str, str]) -> dict[str, str]:
    """All properties: those in `tailrace.properties`, overridden by plain options. Raises ConfigError for bad JSON."""
    ours = (PROPERTIES_OPTION, STEPS_OPTION, PAUSE_OPTION, PACE_OPTION, LATEST_OPTION)
    plain = {name: value for name, value in options.items() if name.lower() not in ours}
    text = options.get(PROPERTIES_OPTION)
    if not text:
        return plain
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"not JSON: {error}", where=PROPERTIES_OPTION, remedy="pass json.dumps(properties)"
        ) from error
    if not isinstance(given, dict):
        raise ConfigError("a JSON object is expected", where=PROPERTIES_OPTION, remedy="pass json.dumps(properties)")
    return {**{name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}, **plain}
