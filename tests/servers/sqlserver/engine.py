"""The PostgreSQL behind the double: one database that holds all of SQL Server's databases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import make_conninfo

from tailrace.testing.postgres import EmbeddedPostgres

from .backend import Backend
from .catalogue.model import SystemView
from .datatypes import parse
from .tds.transcode import CODE_PAGES

_SCRIPTS = (
    "base",
    "narrow",
    "convert",
    "catalogue",
    "change_capture",
    "system_functions",
    "system_views",
    "information_schema",
    "start",
)
_SETTINGS = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "400",
    "synchronous_commit": "off",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "jit": "off",
    "autovacuum_naptime": "60s",
    "checkpoint_timeout": "30min",
    "max_locks_per_transaction": "1024",
}
_NAME = "double"
_VIEW_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, t.typname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
WHERE n.nspname IN ('sys', 'infos') AND c.relkind = 'v' AND a.attnum > 0 ORDER BY 1, 2, a.attnum
"""


class Engine:
    """Starts PostgreSQL on a folder, sets it up on first use, opens connections."""

    def __init__(self, folder: Path | None = None, utc_offset: int = 0) -> None:
        self.server = EmbeddedPostgres(18, folder, _SETTINGS)
        self.utc_offset = utc_offset

    def start(self) -> None:
        """Start, and create what the double needs in a new folder."""
        self.server.start()
        with self._maintenance() as admin:
            if admin.scalar(f"SELECT 1 FROM pg_database WHERE datname = '{_NAME}'") is not None:
                return
            # Clients of this server are many and short-lived: let their log-in be cheap.
            admin.run(f"SET scram_iterations = 1; ALTER ROLE postgres PASSWORD '{self.server.password}'")
            admin.run(
                f"CREATE DATABASE {_NAME} TEMPLATE template0 LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'"
                f" LOCALE 'C'"
            )
        backend = self.connect()
        try:
            texts = [_script(name) for name in _SCRIPTS]
            backend.run("SET check_function_bodies = off; CREATE SCHEMA ty;" + _domains("".join(texts)))
            for text in texts:
                backend.run(text)
        except BaseException:
            backend.close()
            self.server.drop_database(_NAME)
            raise
        backend.close()

    def stop(self) -> None:
        """Stop PostgreSQL; a temporary folder is removed."""
        self.server.close()

    def connect(self, name: str = "") -> Backend:
        """A connection for one session."""
        dsn = make_conninfo(self.server.dsn(_NAME), application_name=name or "double")
        options = f"-c ms.utc_offset={self.utc_offset} -c client_min_messages=error -c standard_conforming_strings=on"
        return Backend(dsn, options)

    def views(self, backend: Backend) -> dict[tuple[str, str], SystemView]:
        """The catalogue views, by schema and name in lower case."""
        columns: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for schema, view, column, domain in backend.run(_VIEW_COLUMNS).rows:
            columns.setdefault((str(schema), str(view)), []).append((str(column), str(domain)))
        found = {}
        for (schema, view), listed in columns.items():
            visible = tuple((column, parse(domain), True) for column, domain in listed if column != "_db")
            name = "INFORMATION_SCHEMA" if schema == "infos" else schema
            per_database = any(column == "_db" for column, _ in listed)
            found[name.lower(), view] = SystemView(name, view, f'{schema}."{view}"', visible, per_database)
        return found

    @contextmanager
    def _maintenance(self) -> Iterator[Backend]:
        admin = Backend(self.server.dsn("postgres"))
        try:
            yield admin
        finally:
            admin.close()


def _script(name: str) -> str:
    text = (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    if name == "narrow":
        return "".join(
            text.replace("{code_page}", page).replace("{characters}", _characters(page)) for page in CODE_PAGES
        )
    return text


def _characters(page: str) -> str:
    """The characters above ASCII of a code page, and the controls that its gaps stand for."""
    return "".join(bytes([code]).decode(page, "sqlserver") for code in range(0x80, 0x100))


def _domains(text: str) -> str:
    """The domains ty."…" that the scripts name: each is called as a type of T-SQL, and tells it of a view's column."""
    names = sorted(set(re.findall(r'::ty\.(?:"([^"]+)"|(\w+))', text)))
    found = {first or second for first, second in names}
    return "".join(f'CREATE DOMAIN ty."{name}" AS {parse(name).storage};' for name in sorted(found))
