"""Compares column values as the reference does: null equals null and NaN equals NaN."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.arrow import flags
from tailrace.model.held import is_held, text_of, value_of
from tailrace.model.schema import ConnectSchema
from tailrace.model.text.json import encode


def same(old: pa.Array, new: pa.Array, schema: ConnectSchema) -> npt.NDArray[np.bool_]:
    """Row by row whether two arrays of one column hold the same value."""
    if is_held(old.type):
        return same(value_of(old), value_of(new), schema) & same(text_of(old), text_of(new), ConnectSchema("string"))
    if pa.types.is_nested(old.type) or pa.types.is_floating(old.type):
        plain = schema.with_(optional=True, default=None)
        return flags(pc.equal(encode(old, plain), encode(new, plain)))
    equal = pc.equal(old, new).fill_null(pa.scalar(False, pa.bool_()))
    return flags(pc.or_(equal, pc.and_(old.is_null(), new.is_null())))
