"""The names that `tailrace` has for users."""

from __future__ import annotations

import tailrace


def test_public_names() -> None:
    """What users import from `tailrace` is a promise: take nothing away, add with care."""
    assert tailrace.__all__ == [
        "TailraceError",
        "__version__",
        "complete_until",
        "observe",
        "read",
        "signal",
        "tables",
        "variants",
    ]
    assert all(hasattr(tailrace, name) for name in tailrace.__all__)
