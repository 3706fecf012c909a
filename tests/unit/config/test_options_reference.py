"""The reference page of the properties is the one the declarations give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "postgres-options.md"
    copy = tmp_path / "tools" / "options_reference.py"
    copy.parent.mkdir()
    copy.write_text((ROOT / "tools" / "options_reference.py").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, copy], check=True)
    fresh = (tmp_path / "docs" / "reference" / "postgres-options.md").read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == fresh, "run: python tools/options_reference.py"
