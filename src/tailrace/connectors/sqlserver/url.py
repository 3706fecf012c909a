"""Reads the URL of a new pipeline."""

from __future__ import annotations

from tailrace.connectors.change_tables.url import UrlForm
from tailrace.connectors.ports import NewSource

_FORM = UrlForm(
    "mssql://user@host:1433/database?encrypt=true",
    port=1433,
    options={
        "encrypt": "driver.encrypt",
        "trustservercertificate": "driver.trustServerCertificate",
        "truststore": "driver.trustStore",
        "instance": "database.instance",
        "applicationintent": "driver.applicationIntent",
    },
    variable="MSSQL_PASSWORD",
    database="database.names",
)


def new_source(url: str) -> NewSource:
    """The source that a URL describes: its password goes into an environment variable. Raises ConfigError."""
    return _FORM.source(url)
