"""Random scenarios of PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

ENGINE: dict[str, str] = {}

EXPLAINED: tuple[tuple[str, str], ...] = ()


def write(seed: int, folder: Path) -> None:
    """See Generator.write."""
    (folder / "setup.sql").write_text("CREATE TABLE t (id int primary key, v text);\nINSERT INTO t VALUES (1, 'a');\n")
    (folder / "workload.sql").write_text(f"INSERT INTO t VALUES ({seed + 1}, 'b');\n")
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "${host}",
        "database.port": "${port}",
        "database.user": "${user}",
        "database.password": "${password}",
        "database.dbname": "${dbname}",
        "slot.name": "${slot}",
        "plugin.name": "pgoutput",
        "topic.prefix": "srv",
    }
    (folder / "connector.json").write_text(json.dumps({"name": "compare", "config": config}, indent=2) + "\n")
