"""A package with entry points, as pip would install it."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, *offers: str) -> None:
    """Install a module of this text, with entry points for connectors. Names are for one test file: they are cached."""
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    offered = "\n".join(["[tailrace.connectors]", *offers, ""])
    (metadata / "entry_points.txt").write_text(offered, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
