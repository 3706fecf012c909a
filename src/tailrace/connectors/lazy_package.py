"""The part of ConnectorPackage that all databases share: it imports what needs a driver when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from tailrace.config import Config
from tailrace.config.resolve import Check
from tailrace.connectors.log_ports import Connector
from tailrace.connectors.ports import Admin, ConnectorPackage, NewSource
from tailrace.connectors.probe import Bench
from tailrace.model.source import SourceBlock
from tailrace.override import override


class LazyPackage(ConnectorPackage):
    """Implements ConnectorPackage by functions and classes of the modules beside it, each as `module:name`."""

    properties = "config:resolve"
    blocks = "record_format:source_block"
    connectors: str
    admins: str
    sources: str
    benches: str

    def part(self, path: str) -> Any:
        """What `module:name` names, in the package that this class belongs to."""
        module, _, name = path.partition(":")
        return getattr(import_module(f"{type(self).__module__.rpartition('.')[0]}.{module}"), name)

    @override
    def resolve(self, properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
        config: Config = self.part(self.properties)(properties, checks)
        return config

    @override
    def source_block(self, config: Config) -> SourceBlock:
        block: SourceBlock = self.part(self.blocks)(config)
        return block

    @override
    def connector(self, config: Config) -> Connector:
        connector: Connector = self.part(self.connectors)(config)
        return connector

    @override
    def admin(self, config: Config) -> Admin:
        admin: Admin = self.part(self.admins)(config)
        return admin

    @override
    def new_source(self, url: str) -> NewSource:
        source: NewSource = self.part(self.sources)(url)
        return source

    @override
    def bench(self, config: Config, schema: str) -> Bench:
        bench: Bench = self.part(self.benches)(config, schema)
        return bench
