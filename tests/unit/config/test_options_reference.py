"""The reference pages of the properties are those that the declarations give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.connectors.registry import BUILT_IN

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the tool has made all pages."""
    folder = tmp_path_factory.mktemp("pages")
    copy = folder / "tools" / "options_reference.py"
    copy.parent.mkdir()
    copy.write_text((ROOT / "tools" / "options_reference.py").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, copy], check=True)
    return folder


@pytest.mark.parametrize("name", [*(f"{database}-options" for database in sorted(BUILT_IN)), "faults"])
def test_the_page_is_up_to_date(made: Path, name: str) -> None:
    page = Path("docs", "reference", f"{name}.md")
    fresh = (made / page).read_text(encoding="utf-8")
    assert (ROOT / page).read_text(encoding="utf-8") == fresh, "run: python tools/options_reference.py"
