"""The converters of keys, values and headers, and the schema that the JSON converter writes around each payload."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.config import Config
from tailrace.config.converter_names import JSON
from tailrace.config.faults import Fault
from tailrace.config.options.converters import CONVERTER, DECIMAL_FORMAT, REPLACE_NULL_WITH_DEFAULT, SCHEMAS_ENABLE
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.json import PLAIN, Decimals, Style, schema_text


@dataclass(frozen=True, slots=True)
class Converter:
    """`schemas`: whether each payload is written with its schema; `style`: how values are written.

    `kind` is JSON but for headers, which have SIMPLE or STRING, too; `lacks_dates`: see value_texts.py.
    """

    schemas: bool = True
    style: Style = PLAIN
    kind: str = JSON
    lacks_dates: bool = False

    @staticmethod
    def of(config: Config, part: str) -> Converter:
        """The settings of the `key`, `value` or `header` converter."""
        converter = CONVERTER[part]
        kind = config[converter]
        if kind != JSON:
            return Converter(False, kind=kind, lacks_dates=Fault.EARLY_TIMES_WITHOUT_DATE in config[COMPAT_FAULTS])
        return Converter.json(config, converter.name)

    @staticmethod
    def json(config: Config, prefix: str) -> Converter:
        """The settings of a JSON converter, whose properties begin with `prefix`."""
        own = config.within(prefix)
        style = Style(own[REPLACE_NULL_WITH_DEFAULT], Decimals(own[DECIMAL_FORMAT].lower()))
        return Converter(own[SCHEMAS_ENABLE], style)

    def wrap(self, schema: ConnectSchema) -> tuple[str, str]:
        """The texts before and after each payload."""
        return (f'{{"schema":{schema_text(schema, self.style)},"payload":', "}") if self.schemas else ("", "")
