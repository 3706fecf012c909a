"""Makes the data of a signal from what an operator gives, and refuses what a pipeline would only warn of."""

from __future__ import annotations

import difflib
import json
from typing import Any

from tailrace.config.filters import TableFilter
from tailrace.errors import ConfigError
from tailrace.operate.status import captured_by
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.query_id import position_of
from tailrace.snapshot import actions
from tailrace.snapshot.matching import matching
from tailrace.snapshot.signals import BLOCKING, INCREMENTAL


def refuse_unknown(definition: Definition, names: list[str]) -> None:
    """Raises ConfigError for a table or expression that no captured table matches; a pipeline only warns."""
    captures = TableFilter.from_config(captured_by(definition.config(), position_of(definition))).captures
    captured = [table.name for table in definition.admin().overview() if captures(table.id)]
    for name, matches in zip(names, matching(names, captured, ignore_case=False), strict=True):
        if isinstance(matches, str):
            raise ConfigError(f"is no regular expression: {matches}", where=name, remedy="Correct it.")
        if not matches and name.replace('"', "") not in captured:
            near = difflib.get_close_matches(name, captured, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            remedy = f"{hint}A table is captured by `tailrace add`; it is captured now: {', '.join(captured[:10])}."
            raise ConfigError("no captured table matches", where=name, remedy=remedy)


def content(
    type_: str, data: str, collections: list[str], kind: str | None, filter_: str | None, surrogate: str | None
) -> dict[str, Any]:
    """A signal's data from the options. Raises ConfigError for what the pipeline would only warn of."""
    if type_ not in actions.types():
        remedy = (
            f"Take one of {', '.join(actions.types())}; a type of your own is known where its package is installed."
        )
        raise ConfigError("is no type of signal", where=type_, remedy=remedy)
    try:
        body = json.loads(data)
    except ValueError as error:
        raise ConfigError(f"is no JSON: {error}", where="--data") from error
    if not isinstance(body, dict):
        raise ConfigError("is no JSON object", where="--data", remedy='Write {"name": "value", ...}.')
    if collections:
        body["data-collections"] = collections
    names = body.get("data-collections") or []
    if not isinstance(names, list):
        raise ConfigError("data-collections is no list", where="--data", remedy='Write {"data-collections": ["s.t"]}.')
    if type_ == "execute-snapshot" and not names:
        raise ConfigError("names no tables", where=type_, remedy="Give --data-collections once for each.")
    if kind is not None:
        body["type"] = kind
    if str(body.get("type", INCREMENTAL)).lower() not in (INCREMENTAL, BLOCKING):
        raise ConfigError(
            "is no type of snapshot", where=str(body["type"]), remedy=f"Take {INCREMENTAL} or {BLOCKING}."
        )
    if filter_ is not None:
        body["additional-conditions"] = [{"data-collection": name, "filter": filter_} for name in names]
    if surrogate is not None:
        body["surrogate-key"] = surrogate
    return body
