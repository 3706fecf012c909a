"""Registers tables in the AWS Glue Data Catalog, in the form that Athena, Spark and Databricks read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, ProfileNotFound

from tailrace.errors import ConfigError, SinkAwayError, SinkError
from tailrace.override import override
from tailrace.sinks.replica.catalogs.catalog import Catalog
from tailrace.sinks.replica.catalogs.entry import CatalogEntry, CatalogTable, shortened
from tailrace.sinks.replica.catalogs.hive_form import EXTERNAL, INPUT, NAMES, OUTPUT, SERDE

_WHERE = "sink.replica.catalog"
# Athena looks for the first, Glue's own jobs and its console for the second; `spark.sql.sources.provider` is Spark's.
_DELTA = {"table_type": "DELTA", "classification": "delta"}
# The service's limits of a column's comment and of a table's description.
_COMMENT_BYTES, _DESCRIPTION_BYTES = 255, 2048
# A table that nobody has: to change or delete it fails by its absence, or by a right that is missing.
_NOBODYS = "tailrace_check_of_rights"
_MISSING = "EntityNotFoundException"
_DENIED = ("AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException")
_PASSING = ("ThrottlingException", "InternalServiceException", "OperationTimeoutException", "ServiceUnavailable")
_RIGHTS = "glue:GetDatabase, glue:GetTable, glue:CreateTable, glue:UpdateTable and glue:DeleteTable"


class Glue(Catalog):
    """Implements Catalog for a database of Glue; `properties` have pyiceberg's names (`glue.region`, ...)."""

    def __init__(self, properties: Mapping[str, str], database: str) -> None:
        self._database, self._properties = database, properties
        self._made: Any = None

    @override
    def look(self) -> str:
        """The right to create a table is found out by nothing but creating one."""
        with self._asking() as client:
            client.get_database(**self._of())
            for call in (client.get_table, client.update_table, client.delete_table):
                self._try(call)
        return f"Glue answers, and tables of the database {self._database} may be read, changed and deleted"

    @override
    def find(self, name: str) -> CatalogTable | None:
        table = self._table(name)
        if table is None:
            return None
        storage = table.get("StorageDescriptor", {})
        return CatalogTable.of(storage.get("Location"), table.get("Parameters", {}))

    @override
    def create(self, entry: CatalogEntry) -> None:
        with self._asking() as client:
            client.create_table(**self._in(), TableInput=_input(entry, {}))

    @override
    def change(self, entry: CatalogEntry) -> None:
        """Glue keeps the versions before, unless it is told not to."""
        before = self._table(entry.name) or {}
        with self._asking() as client:
            table = _input(entry, before.get("Parameters", {}))
            client.update_table(**self._in(), TableInput=table, SkipArchive=True)

    @override
    def drop(self, name: str) -> None:
        with self._asking() as client:
            client.delete_table(**self._in(), Name=name)

    def _table(self, name: str) -> dict[str, Any] | None:
        with self._asking() as client:
            try:
                table: dict[str, Any] = client.get_table(**self._in(), Name=name)["Table"]
            except client.exceptions.EntityNotFoundException:
                client.get_database(**self._of())  # which says so if it is the database that is missing
                return None
            return table

    def _try(self, call: Callable[..., object]) -> None:
        """Try a right on the table that nobody has. Raises ClientError where it is missing."""
        given = {"TableInput": {"Name": _NOBODYS}} if call.__name__ == "update_table" else {"Name": _NOBODYS}
        try:
            call(**self._in(), **given)
        except ClientError as error:
            if error.response["Error"]["Code"] != _MISSING:
                raise

    def _of(self) -> dict[str, str]:
        return {**self._id(), "Name": self._database}

    def _in(self) -> dict[str, str]:
        return {**self._id(), "DatabaseName": self._database}

    def _id(self) -> dict[str, str]:
        number = self._properties.get("glue.id")
        return {} if number is None else {"CatalogId": number}

    def _client(self) -> Any:
        if self._made is None:
            given = {name.removeprefix("glue."): text for name, text in self._properties.items()}
            session = boto3.Session(
                profile_name=given.get("profile-name"),
                region_name=given.get("region"),
                aws_access_key_id=given.get("access-key-id"),
                aws_secret_access_key=given.get("secret-access-key"),
                aws_session_token=given.get("session-token"),
            )
            patience = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 2})
            self._made = session.client("glue", endpoint_url=given.get("endpoint"), config=patience)
        return self._made

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        """The client. Raises SinkAwayError, SinkError, and ConfigError for what the environment lacks."""
        try:
            yield self._client()
        except (NoCredentialsError, NoRegionError, ProfileNotFound) as error:
            raise ConfigError(
                f"Glue cannot be asked: {error}",
                where=_WHERE,
                remedy="set glue.region in `catalog`, and give credentials as for every program of AWS",
            ) from error
        except ClientError as error:
            raise self._refused(error) from error
        except (BotoCoreError, OSError) as error:
            raise SinkAwayError(
                f"Glue does not answer: {error}", where=_WHERE, remedy="check the network, and `glue.endpoint`"
            ) from error

    def _refused(self, error: ClientError) -> SinkError:
        code, said = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        if code in _PASSING:
            return SinkAwayError(f"Glue is busy: {said}", where=_WHERE, remedy="nothing; it is asked again")
        if code == _MISSING:
            remedy = f"create it (aws glue create-database --database-input Name={self._database})"
            return SinkError(
                f"Glue has no database {self._database}: {said}", where=_WHERE, remedy=f"{remedy}, or set `namespace`"
            )
        remedy = f"grant {_RIGHTS} on catalog, database and tables" if code in _DENIED else "see what Glue says"
        return SinkError(f"Glue refuses it: {code}: {said}", where=_WHERE, remedy=remedy)


def _input(entry: CatalogEntry, others: Mapping[str, str]) -> dict[str, Any]:
    """The table as Glue takes it, with the parameters that others have added."""
    columns = []
    for column in entry.columns:
        # The service takes no comment of several lines.
        line = None if column.comment is None else " ".join(column.comment.split())
        comment = shortened(line, _COMMENT_BYTES)
        named = {"Name": column.name, "Type": column.type_text(NAMES)}
        columns.append(named if comment is None else {**named, "Comment": comment})
    kept = {name: text for name, text in others.items() if not name.startswith("tailrace.")}
    description = shortened(entry.comment, _DESCRIPTION_BYTES)
    return {
        "Name": entry.name,
        **({} if description is None else {"Description": description}),
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**kept, **EXTERNAL, **_DELTA, **entry.parameters},
        "StorageDescriptor": {
            "Columns": columns,
            "Location": entry.location,
            "InputFormat": INPUT,
            "OutputFormat": OUTPUT,
            "SerdeInfo": {
                "SerializationLibrary": SERDE,
                "Parameters": {"serialization.format": "1", "path": entry.location},
            },
        },
    }
