"""Record formats by `compat.version`: today's, and that of Debezium 2.3."""

from __future__ import annotations

from tailrace.config import Config
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.connectors.sqlserver.options import COMPAT_VERSION, OLD
from tailrace.connectors.sqlserver.position import BLOCK
from tailrace.model.source import SourceBlock


def source_block(config: Config) -> SourceBlock:
    """The `source` block and the envelope of a configuration."""
    if config[COMPAT_VERSION] != OLD:
        return BLOCK
    return BLOCK.as_of_2(has_transaction=config[PROVIDE_TRANSACTION_METADATA])
