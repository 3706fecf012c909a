"""Names datasets as OpenLineage's naming conventions do (its page of that name): a namespace and a name there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from tailrace.pipeline.targets import ReplicaTarget
from tailrace.sinks.replica.roots import DATABASE_FORMAT, in_database
from tailrace.sinks.replica.target import Target

Name = tuple[str, str]

_S3 = ("s3a", "s3n")


def of_place(place: str) -> Name:
    """Of a path or URL."""
    parts = urlsplit(place)
    if not parts.netloc:
        return "file", parts.path if parts.scheme in ("", "file") else place
    scheme = "s3" if parts.scheme in _S3 else parts.scheme
    return f"{scheme}://{parts.netloc}", parts.path.strip("/") or "/"


def of_table(target: ReplicaTarget, table: Target) -> Name:
    """Of a replica's table: where a Delta table lies, what a catalog or a database calls another one."""
    if target.format == DATABASE_FORMAT:
        return in_database(table.uri)
    if target.format == "iceberg":
        return in_catalog(target.catalog_properties, table.uri)
    return of_place(table.uri)


def in_catalog(properties: Mapping[str, str], name: str) -> Name:
    """Of a table that a catalog has; `name` has the levels of its namespace. No user and no password is in it."""
    kind, uri = properties.get("type"), properties.get("uri", "")
    parts = urlsplit(uri if "://" in uri else f"//{uri}")
    address = parts.netloc.rpartition("@")[2]
    if kind == "glue":
        region = properties.get("glue.region") or os.environ.get("AWS_REGION", "")
        return f"arn:aws:glue:{region}:{properties.get('glue.id', '')}", f"table/{name.replace('.', '/')}"
    if kind == "unity":
        return f"unitycatalog://{address}", name
    if kind == "hive" or parts.scheme == "thrift":
        return f"hive://{address.partition(',')[0]}", name
    if uri:
        return f"{parts.scheme}://{address}{parts.path}".rstrip("/"), name
    warehouse = properties.get("warehouse", "").rstrip("/")
    return (warehouse if "://" in warehouse else f"file:{warehouse}"), name
