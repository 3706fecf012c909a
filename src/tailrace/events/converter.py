"""The JSON converter's settings for keys or values, and the schema that it writes around each payload."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.config import Config
from tailrace.events.encode.json import PLAIN, Style, schema_text
from tailrace.model.schema import ConnectSchema


@dataclass(frozen=True, slots=True)
class Converter:
    """`schemas`: whether each payload is written with its schema; `style`: how values are written."""

    schemas: bool = True
    style: Style = PLAIN

    @staticmethod
    def of(config: Config, part: str) -> Converter:
        """The settings of the `key`, `value` or `header` converter."""
        prefix = f"{part}.converter"
        numeric = config.text(f"{prefix}.decimal.format") == "NUMERIC"
        style = Style(config.flag(f"{prefix}.replace.null.with.default"), numeric)
        return Converter(config.flag(f"{prefix}.schemas.enable"), style)

    def wrap(self, schema: ConnectSchema) -> tuple[str, str]:
        """The texts before and after each payload."""
        return (f'{{"schema":{schema_text(schema, self.style)},"payload":', "}") if self.schemas else ("", "")
