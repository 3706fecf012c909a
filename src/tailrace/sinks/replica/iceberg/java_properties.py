"""Properties of a catalog of pyiceberg's in the words of Iceberg's Java code, in which Spark's catalogs are written."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from tailrace.sinks.replica.roots import DATABASE

# The name of the catalog in pyiceberg, whose own settings (PYICEBERG_CATALOG__TAILRACE__...) add to the properties that
# are given, and in Spark: catalogs of type sql keep it with their tables.
CATALOG = "tailrace"
PREFIX = f"spark.sql.catalog.{CATALOG}"
CLASS = "org.apache.iceberg.spark.SparkCatalog"
# The database whose tables replicas may be as well.
_SERVER = DATABASE.partition(":")[0]
_TYPES = {"sql": "jdbc", "rest": "rest", "hive": "hive", "glue": "glue"}
# What pyiceberg takes a catalog to be whose properties do not say it, by the scheme of `uri`.
_SCHEMES = {"http": "rest", "https": "rest", "thrift": "hive", "sqlite": "sql", _SERVER: "sql", "mysql": "sql"}
# Tried: SQLite. Newer drivers do as well.
_DRIVERS = {
    "sqlite": "org.xerial:sqlite-jdbc:3.50.3.0",
    _SERVER: f"org.{_SERVER}:{_SERVER}:42.7.7",
    "mysql": "com.mysql:mysql-connector-j:9.3.0",
}
# Tables change under Spark's eyes, so none is remembered; each file's own scheme decides how it is reached.
_ALWAYS = {"": CLASS, "cache-enabled": "false", "io-impl": "org.apache.iceberg.io.ResolvingFileIO"}
# Properties that both know by these names.
_SAME = (
    *("warehouse", "uri", "token", "credential", "scope", "oauth2-server-uri", "prefix", "audience", "resource"),
    *("rest.sigv4-enabled", "rest.signing-region", "rest.signing-name", "io-impl"),
    *("glue.id", "glue.endpoint", "glue.skip-archive", "client.region"),
    *("s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token"),
    *("gcs.project-id", "gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.service.host"),
)
_RENAMED = {
    "s3.region": "client.region",
    "glue.region": "client.region",
    "adls.account-name": "adls.auth.shared-key.account.name",
    "adls.account-key": "adls.auth.shared-key.account.key",
}
_VIRTUAL = "s3.force-virtual-addressing"
# About the process in Python alone, or about how often it tries.
_OF_PYTHON = (
    *("type", "py-io-impl", "echo", "pool_pre_ping", "init_catalog_tables", "downcast-ns-timestamp-to-us-on-write"),
    *("snapshot-loading-mode", "rest-page-size", "glue.max-retries", "glue.retry-mode", "s3.connect-timeout"),
    *("s3.request-timeout", "s3.resolve-region", "s3.retry-strategy-impl", "lock-check-min-wait-time"),
    *("lock-check-max-wait-time", "lock-check-retries"),
)
# Of these a property that has no counterpart says how something is reached, or by whom.
_MATTERS = ("s3.", "client.", "glue.", "gcs.", "adls.", "hdfs.", "hive.", "ssl", "auth", "ugi", "py-catalog-impl")


def spark_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The properties of Spark's catalog, by what follows its name. Raises ValueError for what Java has nothing for."""
    kind = given.get("type") or _SCHEMES.get(urlsplit(given.get("uri", "")).scheme.partition("+")[0])
    if kind not in _TYPES or "py-catalog-impl" in given:
        raise ValueError(
            f"`engine: spark` knows catalogs of the types {', '.join(_TYPES)}, as Spark's are made by Iceberg's Java "
            "code; leave engine out"
        )
    lacking = [name for name in given if not is_known(name) and name.startswith(_MATTERS)]
    if lacking:
        raise ValueError(
            f"`engine: spark`: Iceberg's Java code has nothing for {', '.join(sorted(lacking))}; leave engine out, or "
            "give this to pyiceberg by the environment (PYICEBERG_CATALOG__TAILRACE__...) and to Java by "
            f"`{PREFIX}.*` in `spark`"
        )
    found = {**_ALWAYS, "type": _TYPES[kind]}
    for name, text in given.items():
        if name == "uri" and kind == "sql":
            found |= _jdbc(text)
        elif name == _VIRTUAL:
            found["s3.path-style-access"] = "false" if text.lower() == "true" else "true"
        elif name not in _OF_PYTHON:
            found[_RENAMED.get(name, name)] = text
    if "s3.endpoint" in given:  # pyiceberg addresses buckets of another endpoint by path
        found.setdefault("s3.path-style-access", "true")
    return found


def is_known(name: str) -> bool:
    """Whether a property of pyiceberg's has a counterpart in Java, or needs none."""
    return name in (*_SAME, *_RENAMED, *_OF_PYTHON, _VIRTUAL)


def _jdbc(uri: str) -> dict[str, str]:
    """A URL of SQLAlchemy as JDBC's; the user and password apart. Raises ValueError for another database."""
    scheme, _, rest = uri.partition("://")
    kind = scheme.partition("+")[0]
    if kind not in _DRIVERS or (kind == "sqlite" and not rest.startswith("/")) or rest in ("", "/:memory:"):
        raise ValueError(
            f"`engine: spark` reaches catalogs of type sql in {', '.join(_DRIVERS)}, and this one is in {kind or uri} "
            "or in memory; leave engine out"
        )
    if kind == "sqlite":
        return {"uri": f"jdbc:sqlite:{rest[1:]}"}
    found = urlsplit(f"{kind}://{rest}")
    host = found.netloc.rpartition("@")[2]
    parts = {"uri": f"jdbc:{kind}://{host}{found.path}{'?' + found.query if found.query else ''}"}
    if found.username is not None:
        parts["jdbc.user"] = unquote(found.username)
    if found.password is not None:
        parts["jdbc.password"] = unquote(found.password)
    return parts


def driver(options: Mapping[str, str]) -> str | None:
    """The package of the JDBC driver that the catalog needs, None where it needs none."""
    return _DRIVERS.get(urlsplit(options.get("uri", "")).scheme.partition("+")[0])
