"""Writes the pages of docs/reference: <db>-options.md of each built-in connector, and faults.md (compat.faults)."""

from __future__ import annotations

from pathlib import Path

from tailrace.config.faults import Fault
from tailrace.config.option import Option, OptionStatus, OptionTable
from tailrace.config.options.converter_families import is_of_delegate
from tailrace.connectors.registry import BUILT_IN, imported

FOLDER = Path(__file__).parent.parent / "docs" / "reference"

_INTRO = """\
# Properties of the {product} connector

`tools/options_reference.py` generates this page from the declarations; do not edit it.

The names are Debezium's, so a Debezium configuration works as it is. Names are not case-sensitive. Lists
are separated by commas. The items of a regex list must match the whole name and ignore case; a comma inside an
expression is written `\\,`. In files, `${{env:NAME}}` is replaced by an environment variable,
`${{file:PATH:KEY}}` by an entry of a .properties file, `${{dir:PATH:FILE}}` by a file's text.

| status | meaning |
|---|---|
| works | has the effect in the column "meaning" |
| no effect | accepted, because configurations of Kafka Connect contain it; the reason is given |
| refused | an error that says what to do instead |

"""

_FAULTS_INTRO = """\
# Faults of the reference engine

`tools/options_reference.py` generates this page from `config/faults.py`; do not edit it.

Tailrace does not have these faults of Debezium. `compat.faults=true` repeats them all; a list of names, such as
`compat.faults=null_names,driver_dates`, repeats these alone. Each is shown by a recording of the real connector, with
which `make golden` compares. What else differs from Debezium is listed in [differences](../differences.md) and on the
pages of the connectors.

| name | what it does | connectors | place upstream | recording |
|---|---|---|---|---|
"""

_STATUS = {OptionStatus.WORKS: "works", OptionStatus.CONNECT: "no effect", OptionStatus.REFUSED: "refused"}


def page(product: str, table: OptionTable) -> str:
    """The page as text."""
    parts = [_INTRO.format(product=product)]
    for group, options in table.groups.items():
        parts.append(f"## {group}\n\n| property | type | default | meaning | status |\n|---|---|---|---|---|\n")
        parts += [_row(option) for option in options if not is_of_delegate(option)]
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def faults_page() -> str:
    """The page of the faults that `compat.faults` repeats."""
    parts = [_FAULTS_INTRO]
    for fault in Fault:
        facts = fault.value
        connectors = ", ".join(BUILT_IN[name].product for name in facts.connectors)
        shown = f"[{facts.recording}](../../tests/golden/{facts.recording})"
        cells = (f"`{fault.name.lower()}`", facts.effect, connectors, f"`{facts.place}` ({facts.version})", shown)
        parts.append(f"| {' | '.join(cells)} |\n")
    return "".join(parts)


def _row(option: Option[object]) -> str:
    default = "required" if option.required else "" if option.default is None else f"`{option.default}`"
    status = _STATUS[option.status] + (f": {option.note}" if option.note else "")
    cells = (f"`{option.name}`", option.kind.label, default, _meaning(option), status)
    return f"| {' | '.join(cells)} |\n"


def _meaning(option: Option[object]) -> str:
    parts = [option.help]
    if option.aliases:
        parts.append(f"Deprecated: {', '.join(f'`{alias.name}`' for alias in option.aliases)}.")
    if option.old_values:
        translated = ", ".join(f"`{old}` is `{new}`" for old, new in option.old_values.items())
        parts.append(f"Deprecated values: {translated}.")
    return " ".join(parts)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, entry in BUILT_IN.items():
        text = page(entry.product, imported(str(entry.options)))
        (FOLDER / f"{name}-options.md").write_text(text, encoding="utf-8")
    (FOLDER / "faults.md").write_text(faults_page(), encoding="utf-8")
