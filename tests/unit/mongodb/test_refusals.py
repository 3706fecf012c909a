"""What the server refuses is told with what may have happened."""

from __future__ import annotations

import pytest
from pymongo.errors import OperationFailure

from tailrace.connectors.mongodb.client import FAILURES, UNAUTHORIZED
from tailrace.errors import SourceError


def test_a_lacking_privilege_may_be_that_of_a_user_who_is_gone() -> None:
    with pytest.raises(SourceError, match="lacks the privilege") as caught, FAILURES.translated("reading"):
        raise OperationFailure("not authorized on admin", UNAUTHORIZED)
    assert "whether the user still exists" in (caught.value.remedy or "")
    assert "grant it the roles" in (caught.value.remedy or "")
