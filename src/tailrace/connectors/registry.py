"""Finds a connector by its name, its Debezium class or a URL, and imports its package when it is first needed.

No other module outside `connectors/<db>/` names databases and drivers. Installed packages add connectors of their own
by the entry-point group `tailrace.connectors`; each entry point there is a ConnectorEntry.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tailrace.config import entrypoints
from tailrace.config.misspelt import Foreign
from tailrace.config.option import OptionTable
from tailrace.errors import ConfigError

if TYPE_CHECKING:
    # The command line imports this module, and the protocols import Arrow.
    from tailrace.connectors.ports import ConnectorPackage

GROUP = "tailrace.connectors"
CLASS = "connector.class"


@dataclass(frozen=True)
class ConnectorEntry:
    """What is known of a connector before its package is imported.

    `package` is its ConnectorPackage as `module:class`, `options` the table of its properties as `module:name`.
    `drivers` are the modules that must be importable, `install` is what pip installs them by. `url` is an example of
    the URLs that `init` takes, which begin with one of `schemes`. `demo` is an embedded server as `module:class`, for
    `tailrace demo`. `metrics` is the connector's name in the metrics of the reference, as its class contextName()
    in lower case has it; `has_tasks`: these metrics have the label `task`, and `by_database`: most of them the label
    `database`. `has_transactions`: positions in the log
    tell one transaction from the next. `lineage` is the scheme of its servers in the names of OpenLineage's datasets.
    """

    name: str
    product: str
    format: str
    package: str
    _: KW_ONLY
    classes: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    install: str = ""
    schemes: tuple[str, ...] = ()
    url: str = ""
    demo: str | None = None
    options: str | None = None
    metrics: str = ""
    has_tasks: bool = False
    by_database: bool = False
    has_transactions: bool = True
    lineage: str = ""

    def load(self) -> ConnectorPackage:
        """The connector's package. Raises ConfigError if a driver is missing or the package cannot be imported."""
        missing = [driver for driver in self.drivers if find_spec(driver) is None]
        if missing:
            what = f"the drivers of the connector {self.name} are not installed (missing: {', '.join(missing)})"
            raise ConfigError(
                what, remedy=f"pip install '{self.install}'; on a cluster, where Spark's workers run, too"
            )
        return _package(self)


@cache
def _package(entry: ConnectorEntry) -> ConnectorPackage:
    try:
        package: ConnectorPackage = imported(entry.package)()
        return package
    except (ImportError, AttributeError) as error:
        remedy = f"pip install --force-reinstall '{entry.install}'" if entry.install else None
        raise ConfigError(f"the connector {entry.name} cannot be imported: {error}", remedy=remedy) from error


def imported(path: str) -> Any:
    """The object of a `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


POSTGRES = ConnectorEntry(
    name="postgres",
    product="PostgreSQL",
    format="postgres-cdc",
    package="tailrace.connectors.postgres.package:PostgresPackage",
    metrics="postgres",
    lineage="postgres",
    options="tailrace.connectors.postgres.options:OPTIONS",
    classes=("io.debezium.connector.postgresql.PostgresConnector",),
    drivers=("psycopg", "adbc_driver_postgresql"),
    install="tailrace[postgres]",
    schemes=("postgresql://", "postgres://"),
    url="postgresql://user@host:5432/database?sslmode=verify-full",
    demo="tailrace.testing.postgres:EmbeddedPostgres",
)
MONGODB = ConnectorEntry(
    name="mongodb",
    product="MongoDB",
    format="mongodb-cdc",
    package="tailrace.connectors.mongodb.package:MongoPackage",
    metrics="mongodb",
    lineage="mongodb",
    has_tasks=True,
    has_transactions=False,
    options="tailrace.connectors.mongodb.options:OPTIONS",
    classes=("io.debezium.connector.mongodb.MongoDbConnector",),
    drivers=("pymongo",),
    install="tailrace[mongodb]",
    schemes=("mongodb://", "mongodb+srv://"),
    url="mongodb://user@host:27017/?replicaSet=rs0",
)
SQLSERVER = ConnectorEntry(
    name="sqlserver",
    product="SQL Server",
    format="sqlserver-cdc",
    package="tailrace.connectors.sqlserver.package:SqlServerPackage",
    metrics="sql_server",
    lineage="mssql",
    has_tasks=True,
    by_database=True,
    options="tailrace.connectors.sqlserver.options:OPTIONS",
    classes=("io.debezium.connector.sqlserver.SqlServerConnector",),
    drivers=("pymssql",),
    install="tailrace[sqlserver]",
    schemes=("mssql://", "sqlserver://"),
    url="mssql://user@host:1433/database",
)
DB2 = ConnectorEntry(
    name="db2",
    product="Db2",
    format="db2-cdc",
    package="tailrace.connectors.db2.package:Db2Package",
    metrics="db2_server",
    lineage="db2",
    options="tailrace.connectors.db2.options:OPTIONS",
    classes=("io.debezium.connector.db2.Db2Connector",),
    drivers=("ibm_db",),
    install="tailrace[db2]",
    schemes=("db2://",),
    url="db2://user@host:50000/DATABASE",
)
BUILT_IN: Mapping[str, ConnectorEntry] = {entry.name: entry for entry in (POSTGRES, MONGODB, SQLSERVER, DB2)}
# A configuration that names no connector is PostgreSQL's, as pipeline files were before there were others.
DEFAULT = POSTGRES


def named(name: str) -> ConnectorEntry:
    """The connector of that name. Raises ConfigError for an unknown one."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    all_names = names()
    if name not in all_names:
        near = difflib.get_close_matches(name, all_names, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        remedy = (
            f"{meant}known are {', '.join(all_names)}; others come by packages with an entry point of the group {GROUP}"
        )
        raise ConfigError(f"there is no connector {name!r}", remedy=remedy)
    return _installed(name)


def names() -> list[str]:
    """The names of all connectors, built in and installed."""
    return sorted({*BUILT_IN, *entry_points(group=GROUP).names})


def elsewhere(name: str) -> Foreign | None:
    """A property that some built-in connectors have; one that a family passes on to a driver is no property."""
    products = []
    for entry in BUILT_IN.values():
        option = _options(entry).find(name)
        if option is not None and not option[0].name.endswith("*"):
            products.append(entry.product)
            own, other = name if option[0].is_family else option[0].name, option[0].counterpart
    return Foreign(own, tuple(products), other) if products else None


def _options(entry: ConnectorEntry) -> OptionTable:
    """The properties of a built-in connector, which take no driver."""
    table: OptionTable = imported(str(entry.options))
    return table


def of_source(name: str | None, properties: Mapping[str, str]) -> ConnectorEntry:
    """The connector that a pipeline file names, else the one of `connector.class`, else DEFAULT.

    Raises ConfigError for an unknown one, and if file and class disagree.
    """
    given = next(
        (text.strip() for key, text in properties.items() if key.strip().lower().replace("_", ".") == CLASS), ""
    )
    by_class = next((entry for entry in _all() if given in entry.classes), None) if given else None
    if name is None:
        if given and by_class is None:
            classes = ", ".join(each for entry in _all() for each in entry.classes)
            raise ConfigError(f"no connector corresponds to {given!r}", where=CLASS, remedy=f"known are {classes}")
        return by_class or DEFAULT
    entry = named(name)
    if by_class is not None and by_class != entry:
        what = f"the pipeline file says connector {entry.name}, but {given} is the class of {by_class.name}"
        raise ConfigError(what, where=CLASS, remedy=f"write connector: {by_class.name}, or leave {CLASS} out")
    return entry


def of_url(url: str) -> ConnectorEntry:
    """The connector whose URLs begin like this one. Raises ConfigError, which does not print the URL."""
    for entry in _all():
        if url.startswith(entry.schemes):
            return entry
    forms = " or ".join(entry.url for entry in _all() if entry.url)
    raise ConfigError("no connector takes a URL of this scheme", where="url", remedy=f"Write {forms}.")


def url_forms() -> str:
    """Examples of the URLs of built-in connectors."""
    return " or ".join(entry.url for entry in BUILT_IN.values())


def _all() -> Iterator[ConnectorEntry]:
    """All entries, the built-in ones first, so that installed ones are imported only if none of those fits."""
    yield from BUILT_IN.values()
    for name in names():
        if name not in BUILT_IN:
            yield _installed(name)


def _installed(name: str) -> ConnectorEntry:
    entry = entrypoints.load(GROUP, name, "connector")
    if not isinstance(entry, ConnectorEntry):
        what = f"the entry point {name!r} of the group {GROUP} is no ConnectorEntry of tailrace.connectors.registry"
        raise ConfigError(what, remedy="correct or uninstall the package that offers it")
    return entry
