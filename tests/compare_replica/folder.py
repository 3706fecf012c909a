"""Writes the folder of a case, which `make replica` runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_case(folder: Path, properties: Mapping[str, str], replica: Mapping[str, Any]) -> None:
    """Write `connector.json` and `replica.json`."""
    document = {"name": folder.name, "config": properties}
    for name, content in (("connector.json", document), ("replica.json", replica)):
        text = json.dumps(content, indent=2, ensure_ascii=False)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def script(statements: Sequence[str]) -> str:
    """Statements and directives, a line each."""
    return "".join(line + ("\n" if line.startswith("--") else ";\n") for line in statements)
