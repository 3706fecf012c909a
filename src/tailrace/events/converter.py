"""The converters of keys, values and headers, and the schema that the JSON converter writes around each payload."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.config import Config
from tailrace.config.converter_names import JSON
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.json import PLAIN, Decimals, Style, schema_text


@dataclass(frozen=True, slots=True)
class Converter:
    """`schemas`: whether each payload is written with its schema; `style`: how values are written.

    `kind` is JSON but for headers, which have SIMPLE or STRING, too; these have `faults`, which is compat.faults.
    """

    schemas: bool = True
    style: Style = PLAIN
    kind: str = JSON
    faults: bool = False

    @staticmethod
    def of(config: Config, part: str) -> Converter:
        """The settings of the `key`, `value` or `header` converter."""
        prefix = f"{part}.converter"
        kind = config.text(prefix)
        if kind != JSON:
            return Converter(False, kind=kind, faults=config.flag("compat.faults"))
        return Converter.json(config, prefix)

    @staticmethod
    def json(config: Config, prefix: str) -> Converter:
        """The settings of a JSON converter, whose properties begin with `prefix`."""
        decimals = Decimals(config.text(f"{prefix}.decimal.format").lower())
        style = Style(config.flag(f"{prefix}.replace.null.with.default"), decimals)
        return Converter(config.flag(f"{prefix}.schemas.enable"), style)

    def wrap(self, schema: ConnectSchema) -> tuple[str, str]:
        """The texts before and after each payload."""
        return (f'{{"schema":{schema_text(schema, self.style)},"payload":', "}") if self.schemas else ("", "")
