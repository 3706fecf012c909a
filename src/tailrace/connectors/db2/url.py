"""Reads the URL of a new pipeline."""

from __future__ import annotations

from tailrace.connectors.change_tables.url import UrlForm
from tailrace.connectors.ports import NewSource

_FORM = UrlForm(
    "db2://user@host:50000/DATABASE?ssl=true",
    port=50000,
    options={"ssl": "driver.sslConnection", "securitymechanism": "driver.securityMechanism"},
    variable="DB2_PASSWORD",
    database="database.dbname",
    lower_prefix=True,
)


def new_source(url: str) -> NewSource:
    """The source that a URL describes: its password goes into an environment variable. Raises ConfigError."""
    return _FORM.source(url)
