"""Registers tables in Unity Catalog by its open REST interface, that of the open-source server and of Databricks."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

import httpx

from tailrace.errors import SinkAwayError, SinkError
from tailrace.override import override
from tailrace.sinks.replica.catalogs.catalog import Catalog
from tailrace.sinks.replica.catalogs.entry import CatalogEntry, CatalogTable, EntryColumn

# Where the token is taken from if the settings have none.
TOKEN = "TAILRACE_CATALOG_TOKEN"
_API = "/api/2.1/unity-catalog"
_WHERE = "sink.replica.catalog"
_SECONDS = 20.0
_BUSY = (408, 429)


class Unity(Catalog):
    """Implements Catalog for a schema, `catalog.schema`, as external tables of the format DELTA."""

    def __init__(self, uri: str, namespace: str, token: str | None) -> None:
        self._base = uri.rstrip("/").removesuffix(_API) + _API
        self._namespace = namespace
        self._catalog, self._schema = namespace.split(".")
        token = token or os.environ.get(TOKEN)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(headers=headers, timeout=_SECONDS)

    @override
    def look(self) -> str:
        """Who may create tables is asked of an owner alone."""
        self._ask("GET", f"/schemas/{quote(self._namespace)}")
        query = f"catalog_name={quote(self._catalog)}&schema_name={quote(self._schema)}&max_results=1"
        self._ask("GET", f"/tables?{query}")
        return f"Unity Catalog answers and has the schema {self._namespace}"

    @override
    def find(self, name: str) -> CatalogTable | None:
        table = self._ask("GET", self._path(name), may_lack=True)
        return None if table is None else CatalogTable.of(table.get("storage_location"), table.get("properties") or {})

    @override
    def create(self, entry: CatalogEntry) -> None:
        table = {
            "name": entry.name,
            "catalog_name": self._catalog,
            "schema_name": self._schema,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "storage_location": entry.location,
            "columns": [_column(column, place) for place, column in enumerate(entry.columns)],
            "properties": entry.parameters,
            **({} if entry.comment is None else {"comment": entry.comment}),
        }
        self._ask("POST", "/tables", table)

    @override
    def change(self, entry: CatalogEntry) -> None:
        """The interface changes no table, so another one takes its place, without the grants of this."""
        self.drop(entry.name)
        self.create(entry)

    @override
    def drop(self, name: str) -> None:
        """The files of an external table stay."""
        self._ask("DELETE", self._path(name), may_lack=True)

    def _path(self, name: str) -> str:
        return f"/tables/{quote(f'{self._namespace}.{name}')}"

    def _ask(self, method: str, path: str, body: Any = None, *, may_lack: bool = False) -> Any:
        """The answer; None for what is not there, if it `may_lack`. Raises SinkAwayError, SinkError."""
        try:
            answer = self._client.request(method, self._base + path, json=body)
        except httpx.TransportError as error:
            raise self._away(str(error) or type(error).__name__) from error
        if answer.status_code in _BUSY or answer.status_code >= 500:
            raise self._away(f"{answer.status_code} {_said(answer)}")
        if answer.status_code == 404 and may_lack:
            return None
        if answer.is_success:
            return answer.json() if answer.content else {}
        raise SinkError(
            f"Unity Catalog refuses it: {answer.status_code} {_said(answer)}",
            where=_WHERE,
            remedy=self._remedy(answer.status_code),
        )

    def _remedy(self, status: int) -> str:
        if status == 401:
            return f"set a valid `catalog.token`, or the variable {TOKEN}"
        if status == 403:
            return (
                f"grant USE CATALOG on {self._catalog}, USE SCHEMA and CREATE TABLE on {self._namespace}, and CREATE "
                "EXTERNAL TABLE on the external location of `path`; on Databricks EXTERNAL USE SCHEMA as well"
            )
        if status == 404:
            return f"create the schema {self._namespace}, or set another `namespace`"
        return "see what it says, and check `path` (or `catalog.location`) against its external locations"

    def _away(self, said: str) -> SinkAwayError:
        return SinkAwayError(
            f"Unity Catalog {self._base} does not answer: {said}",
            where=_WHERE,
            remedy="start it, or check `catalog.uri` and the network",
        )


def _column(column: EntryColumn, place: int) -> dict[str, Any]:
    comment = {} if column.comment is None else {"comment": column.comment}
    field = {"name": column.name, "type": column.kind, "nullable": True, "metadata": comment}
    text = column.type_text()
    name = text.partition("(")[0].partition("<")[0].upper()
    sizes = [int(each) for each in text[len("decimal(") : -1].split(",")] if name == "DECIMAL" else []
    return {
        "name": column.name,
        "type_text": text,
        "type_name": {"BIGINT": "LONG", "SMALLINT": "SHORT", "TINYINT": "BYTE"}.get(name, name),
        "type_json": json.dumps(field),
        "position": place,
        "nullable": True,
        **dict(zip(("type_precision", "type_scale"), sizes, strict=False)),
        **comment,
    }


def _said(answer: httpx.Response) -> str:
    """What the server says of an error, in its own form or in another one's."""
    try:
        content = answer.json()
    except ValueError:
        return answer.text[:200] or answer.reason_phrase
    return str(content.get("message", content)) if isinstance(content, dict) else str(content)
