"""Record formats by `compat.version`: today's, and that of Debezium 2.3."""

from __future__ import annotations

from tailrace.config import Config
from tailrace.connectors.sqlserver.config import OLD
from tailrace.connectors.sqlserver.position import BLOCK
from tailrace.model.source import SourceBlock


def source_block(config: Config) -> SourceBlock:
    """The `source` block and the envelope of a configuration."""
    if config.text("compat.version") != OLD:
        return BLOCK
    return BLOCK.as_of_2(has_transaction=config.flag("provide.transaction.metadata"))
