"""The decorator of methods that override another: mypy verifies that they do (`explicit-override`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import override as override
else:
    # The package is not loaded for this: planners and workers start often, and it takes some milliseconds.
    _Method = TypeVar("_Method", bound=Callable)

    def override(method: _Method) -> _Method:
        """The method, unchanged; what it does is said where it is declared."""
        return method
