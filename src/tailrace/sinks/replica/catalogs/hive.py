"""Registers tables in a Hive metastore by its Thrift interface, in the form in which Spark stores Delta tables."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    AddPrimaryKeyRequest,
    DropConstraintRequest,
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    NoSuchObjectException,
    PrimaryKeysRequest,
    SerDeInfo,
    SQLPrimaryKey,
    StorageDescriptor,
    Table,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from tailrace.errors import SinkAwayError, SinkError
from tailrace.override import override
from tailrace.sinks.replica.catalogs.catalog import Catalog
from tailrace.sinks.replica.catalogs.entry import CatalogEntry, CatalogTable, shortened
from tailrace.sinks.replica.catalogs.hive_form import EXTERNAL, INPUT, NAMES, OUTPUT, SERDE

_PORT, _TIMEOUT_MS = 9083, 20_000  # the usual one; guessed
# What the metastore's tables take of a column's comment, and of a parameter, which a table's comment is.
_COMMENT_BYTES, _PARAMETER_BYTES = 256, 4000
# Otherwise the metastore lists the table's files.
_WITHOUT_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
_WHERE = "sink.replica.catalog"


class Hive(Catalog):
    """Implements Catalog for a database of a metastore. `uri` may name several, with commas; the first that answers."""

    def __init__(self, uri: str, database: str, ugi: str | None) -> None:
        self._uris, self._database = [each.strip() for each in uri.split(",")], database
        self._user, _, group = (ugi or "").partition(":")
        self._groups = [group] if group else []

    @override
    def look(self) -> str:
        """A metastore tells nobody what he may do."""
        with self._asking() as client:
            client.get_database(self._database)
        return f"the Hive metastore answers and has the database {self._database}"

    @override
    def find(self, name: str) -> CatalogTable | None:
        with self._asking() as client:
            table = self._table(client, name)
        if table is None:
            return None
        place = (table.sd.serdeInfo.parameters or {}).get("path") or table.sd.location
        return CatalogTable.of(place, table.parameters or {})

    @override
    def create(self, entry: CatalogEntry) -> None:
        with self._asking() as client:
            client.get_database(self._database)
            self._create(client, entry, {})

    @override
    def change(self, entry: CatalogEntry) -> None:
        """Types that the metastore takes for incompatible are changed by another table in its place."""
        with self._asking() as client:
            before = self._table(client, entry.name)
            others = {} if before is None else dict(before.parameters or {})
            try:
                self._drop_keys(client, entry.name)
                table = self._made(entry, others)
                context = EnvironmentContext(_WITHOUT_STATISTICS)
                client.alter_table_with_environment_context(self._database, entry.name, table, context)
                self._add_key(client, entry)
            except InvalidOperationException:
                client.drop_table(self._database, entry.name, False)
                self._create(client, entry, others)

    @override
    def drop(self, name: str) -> None:
        with self._asking() as client:
            client.drop_table(self._database, name, False)

    def _create(self, client: Client, entry: CatalogEntry, others: Mapping[str, str]) -> None:
        context = EnvironmentContext(_WITHOUT_STATISTICS)
        client.create_table_with_environment_context(self._made(entry, others), context)
        self._add_key(client, entry)

    def _table(self, client: Client, name: str) -> Table | None:
        try:
            return client.get_table(self._database, name)
        except NoSuchObjectException:
            return None

    def _made(self, entry: CatalogEntry, others: Mapping[str, str]) -> Table:
        columns = [
            FieldSchema(column.name, column.type_text(NAMES), shortened(column.comment, _COMMENT_BYTES))
            for column in entry.columns
        ]
        serde = SerDeInfo(serializationLib=SERDE, parameters={"serialization.format": "1", "path": entry.location})
        storage = StorageDescriptor(columns, entry.location, INPUT, OUTPUT, False, -1, serde, [], [], {})
        shown = shortened(entry.comment, _PARAMETER_BYTES)
        comment = {} if shown is None else {"comment": shown}
        kept = {name: text for name, text in others.items() if not name.startswith("tailrace.") and name != "comment"}
        return Table(
            tableName=entry.name,
            dbName=self._database,
            owner=self._user or getpass.getuser(),
            sd=storage,
            partitionKeys=[],
            parameters={**kept, **EXTERNAL, **comment, **entry.parameters},
            tableType="EXTERNAL_TABLE",
        )

    def _drop_keys(self, client: Client, name: str) -> None:
        keys = client.get_primary_keys(PrimaryKeysRequest(self._database, name)).primaryKeys
        for constraint in {each.pk_name for each in keys}:
            client.drop_constraint(DropConstraintRequest(self._database, name, constraint))

    def _add_key(self, client: Client, entry: CatalogEntry) -> None:
        """State the key as one that nobody enforces and queries may rely on."""
        keys = [
            SQLPrimaryKey(self._database, entry.name, column, place, f"pk_{entry.name}", False, False, True)
            for place, column in enumerate(entry.key, 1)
        ]
        if keys:
            client.add_primary_key(AddPrimaryKeyRequest(keys))

    @contextmanager
    def _asking(self) -> Iterator[Client]:
        """A connection for one task. Raises SinkAwayError, SinkError."""
        transport = self._connected()
        try:
            client = Client(TBinaryProtocol(transport))
            if self._user:
                client.set_ugi(self._user, self._groups)
            yield client
        except (TTransportException, OSError) as error:
            raise self._away(str(error)) from error
        except NoSuchObjectException as error:
            raise SinkError(
                f"the Hive metastore has no database {self._database}",
                where=_WHERE,
                remedy=f"create it (CREATE DATABASE {self._database}), or set another `namespace`",
            ) from error
        except TApplicationException as error:
            raise SinkError(
                f"the Hive metastore lacks a call: {error.message}", where=_WHERE, remedy="use one of Hive 2.3 or newer"
            ) from error
        except TException as error:
            raise SinkError(
                f"the Hive metastore refuses it: {getattr(error, 'message', None) or error}",
                where=_WHERE,
                remedy=f"see its log; the user must be allowed to create and alter tables of {self._database}, and the "
                "metastore needs Java classes for the storage of `path` (or of `catalog.location`)",
            ) from error
        finally:
            transport.close()

    def _connected(self) -> TBufferedTransport:
        said = ""
        for uri in self._uris:
            parts = urlsplit(uri if "://" in uri else f"thrift://{uri}")
            socket = TSocket(parts.hostname, parts.port or _PORT)
            socket.setTimeout(_TIMEOUT_MS)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except (TTransportException, OSError) as error:
                said = str(error)
                continue
            return transport
        raise self._away(said)

    def _away(self, said: str) -> SinkAwayError:
        return SinkAwayError(
            f"the Hive metastore {','.join(self._uris)} does not answer: {said}",
            where=_WHERE,
            remedy="start it, or check `catalog.uri` and the network",
        )
