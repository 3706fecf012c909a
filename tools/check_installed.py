"""Checks the installed distribution of this Python: what it holds, what it asks for, and what it says of itself."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import distribution
from pathlib import Path

PROJECT = Path(__file__).parents[1]
# Fields of the metadata that a package index shows.
FIELDS = (
    *("Summary", "License-Expression", "Keywords", "Classifier", "Requires-Python", "Project-URL"),
    "Description-Content-Type",
)


def check() -> str:
    """What was checked, in a sentence. Raises AssertionError for what is wrong."""
    import tailrace

    installed = distribution("tailrace")
    assert not Path(tailrace.__file__).is_relative_to(PROJECT / "src"), "this is the clone, not the distribution"
    assert installed.version == tailrace.__version__, (installed.version, tailrace.__version__)
    lacking = [name for name in FIELDS if not installed.metadata[name]]
    assert not lacking, f"the metadata lacks {lacking}"
    description = installed.metadata.get_payload()  # type: ignore[attr-defined]
    relative = re.findall(r"\]\((?!https?://)[^)\s]+\)", description)
    assert len(description) > 1000, "the metadata lacks the README"
    assert not relative, f"an index would show links that lead nowhere: {relative}"
    wanted = [each for each in installed.requires or () if re.match("pyspark(?![a-z_])", each)]
    assert all("extra ==" in each for each in wanted), f"an installation would bring a Spark: {wanted}"
    held = {path.as_posix() for path in installed.files or ()}
    tops = sorted({path.name for path in (PROJECT / "src").iterdir() if (path / "__init__.py").exists()})
    source = {path.relative_to(PROJECT / "src").as_posix() for top in tops for path in _files(PROJECT / "src" / top)}
    assert source <= held, f"files are missing: {sorted(source - held)}"
    assert any(path.endswith("/licenses/LICENSE") for path in held), "the license is missing"
    (script,) = [each for each in installed.entry_points if each.group == "console_scripts"]
    assert (script.name, script.value) == ("tailrace", "tailrace.cli.main:main"), script
    for module in ("tailrace.errors", "tailrace.version", "tailrace.connectors.registry"):
        importlib.import_module(module)
    return f"tailrace {installed.version}: {len(source)} files in {', '.join(tops)}; no Spark comes with it"


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


if __name__ == "__main__":
    print(check())
