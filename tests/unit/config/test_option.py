"""Options as objects: what a declaration must say."""

from __future__ import annotations

import pytest

from tailrace.config.kinds import TEXT
from tailrace.config.option import Option, OptionTable


def test_a_property_that_may_be_missing_says_so_where_it_is_declared() -> None:
    with pytest.raises(TypeError, match=r"its kind is optional\(text\)"):
        OptionTable({"Some": (Option("some.text", TEXT),)})
