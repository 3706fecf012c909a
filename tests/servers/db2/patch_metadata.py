"""Changes what Derby tells about its columns to what Db2 tells.

Reads two of Derby's own property files out of the jar and writes changed copies below FOLDER, which goes in front of
the jar on the class path. Nothing of Derby is shipped; the copies are made on the user's machine.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

CLIENT_METADATA = "org/apache/derby/impl/sql/catalog/metadata_net.properties"
QUERIES = "org/apache/derby/impl/jdbc/metadata.properties"


def client_metadata(text: str) -> str:
    """Announce an escape character for LIKE patterns; Derby has none, and Debezium asks for its first character."""
    return text.replace("M->getSearchStringEscape()", "'~'")


def queries(text: str) -> str:
    """Honour that escape character; sizes, scales and defaults of getColumns as Db2 gives them."""
    text = re.sub(r"LIKE \?", "LIKE ? ESCAPE '~'", text)
    start = text.index("\ngetColumns=")
    end = text.index("\nodbc_getColumns=")
    columns = text[start:end]
    kind = "C.COLUMNDATATYPE.getJDBCTypeId()"
    columns = columns.replace(
        "CASE WHEN (C.COLUMNDATATYPE.getJDBCTypeId() IN (java.sql.Types::INTEGER,",
        f"CASE WHEN {kind} = java.sql.Types::TIMESTAMP THEN 26 WHEN {kind} = java.sql.Types::REAL THEN 24 "
        f"WHEN {kind} = java.sql.Types::DOUBLE THEN 53 "
        "WHEN (C.COLUMNDATATYPE.getJDBCTypeId() IN (java.sql.Types::INTEGER,",
        1,
    )
    columns = columns.replace(
        "CASE WHEN (C.COLUMNDATATYPE.getJDBCTypeId() IN (java.sql.Types::DECIMAL,",
        f"CASE WHEN {kind} = java.sql.Types::TIMESTAMP THEN 6 "
        "WHEN (C.COLUMNDATATYPE.getJDBCTypeId() IN (java.sql.Types::DECIMAL,",
        1,
    )
    columns, found = re.subn(
        r"\(CASE WHEN \(AUTOINCREMENTINC is NULL\).*?END \) ELSE",
        "CAST (NULL AS VARCHAR(254)) ELSE",
        columns,
        count=1,
        flags=re.S,
    )
    if not found or "THEN 26" not in columns or "THEN 6 " not in columns:
        raise SystemExit("this version of Derby words its metadata queries differently; see patch_metadata.py")
    return text[:start] + columns + text[end:]


def patch(jar: Path, folder: Path) -> None:
    """Write changed copies of the two files of a Derby jar below a folder."""
    archive = zipfile.ZipFile(jar)
    for name, change in ((CLIENT_METADATA, client_metadata), (QUERIES, queries)):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(change(archive.read(name).decode("latin-1")), encoding="latin-1")
