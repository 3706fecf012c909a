"""The marks of transactions in a log: where each begins and ends."""

from __future__ import annotations

import pyarrow as pa

BEGIN, END = "BEGIN", "END"
# By order in the log; `ts_us` is the time of the commit.
MARKS = pa.schema([("order", pa.int64()), ("status", pa.string()), ("id", pa.string()), ("ts_us", pa.int64())])
