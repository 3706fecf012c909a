"""Classifies errors of pyiceberg: a lost race, a catalog or storage that is away, or one table that fails."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    OAuthError,
    RESTError,
    UnauthorizedError,
)

from tailrace.sinks.replica.table import LakeError, LostRaceError

P = ParamSpec("P")
T = TypeVar("T")
# Of packages that only some catalogs need: SQLAlchemy's errors of a database, and boto's.
_AWAY = ("OperationalError", "BotoCoreError", "ClientError", "TTransportException")


@contextmanager
def translating() -> Iterator[None]:
    """Raise what Table says instead of what pyiceberg raises; other errors pass."""
    try:
        yield
    except CommitFailedException as error:
        raise LostRaceError(said(error)) from error
    except (UnauthorizedError, ForbiddenError, OAuthError) as error:
        raise LakeError(f"the catalog refuses it: {said(error)}") from error
    except RESTError as error:
        # Whether a commit of an unknown state was made shows when it is tried again: its mark is there then.
        raise OSError(f"the catalog does not answer: {said(error)}") from error
    except Exception as error:
        if not {*_AWAY}.isdisjoint(kind.__name__ for kind in type(error).__mro__):
            raise OSError(f"the catalog does not answer: {said(error)}") from error
        raise


def translated(method: Callable[P, T]) -> Callable[P, T]:
    """A method within `translating`."""

    @functools.wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with translating():
            return method(*args, **kwargs)

    return run


def said(error: Exception) -> str:
    """An error's first line."""
    return next(iter(str(error).splitlines()), type(error).__name__)
