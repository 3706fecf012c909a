"""The reference pages of the properties are those that the declarations give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.connectors.registry import BUILT_IN

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", [*(f"{database}-options" for database in sorted(BUILT_IN)), "faults"])
def test_the_page_is_up_to_date(tmp_path: Path, name: str) -> None:
    copy = tmp_path / "tools" / "options_reference.py"
    copy.parent.mkdir()
    copy.write_text((ROOT / "tools" / "options_reference.py").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, copy], check=True)
    page = Path("docs", "reference", f"{name}.md")
    fresh = (tmp_path / page).read_text(encoding="utf-8")
    assert (ROOT / page).read_text(encoding="utf-8") == fresh, "run: python tools/options_reference.py"
