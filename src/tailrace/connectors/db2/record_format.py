"""Record formats by `compat.version`: today's, and that of Debezium 1.9."""

from __future__ import annotations

from dataclasses import replace

from tailrace.config import Config
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.connectors.db2.options import COMPAT_VERSION, OLD
from tailrace.connectors.db2.position import BLOCK
from tailrace.model.source import SourceBlock


def source_block(config: Config) -> SourceBlock:
    """The `source` block and the envelope of a configuration."""
    if config[COMPAT_VERSION] != OLD:
        return BLOCK
    old = BLOCK.as_old(BLOCK.fields, has_transaction=config[PROVIDE_TRANSACTION_METADATA])
    return replace(old, common=tuple(each for each in old.common if each.name != "sequence"))
