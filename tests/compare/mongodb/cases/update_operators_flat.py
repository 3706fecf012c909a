"""The update operators with whole documents, flattened."""

from tests.compare.mongodb.cases import update_operators
from tests.compare.mongodb.cases.update_operators import run, setup

__all__ = ("PROPERTIES", "run", "setup")

PROPERTIES = {
    **update_operators.PROPERTIES,
    "capture.mode": "change_streams_update_full",
    "transforms.unwrap.flatten.struct": "true",
}
