"""Texts that no server prints: every type's conversion gives values or a DecodeError that names the column."""

from __future__ import annotations

import os

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from tailrace.connectors.value_type import converted
from tailrace.errors import DecodeError
from tests.unit.postgres.test_values import kind, numeric

search = settings(
    max_examples=int(os.environ.get("TAILRACE_FUZZ_EXAMPLES", "100")) // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

KINDS = {
    **dict.fromkeys(("bool", "int2", "int8", "float8", "numeric", "money", "bytea", "bit", "point", "geometry"), -1),
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz", "interval", "hstore", "line"), -1),
    **dict.fromkeys(("vector", "halfvec", "sparsevec", "text", "jsonb"), -1),
    "numeric(5,2)": numeric(5, 2),
    "numeric(200,5)": numeric(200, 5),
    "numeric(5,-2)": numeric(5, -2),
    "timestamp(3)": 3,
    "bit(1)": 1,
}
ALPHABETS = [
    "0123456789",
    "0123456789.-+eE",
    "0123456789:-. +BC",
    "PYMDTHS-.0123456789",
    '"=>, NUL\\a',
    "{}[](),:/\\x0f",
]
# One in each form, to be damaged.
PRINTED = st.sampled_from(
    [
        *("2018-06-20 15:13:16.5+00 BC", "P1Y2M3DT4H5M6.7S", '"a"=>"1", "b"=>NULL', "{1:1.5,3:2}/5", "[1,2.5]"),
        *("(1,2)", "0101000020E6100000", "\\x0aff", "-12.50", "$1,234.00", "24:00:00+00", "infinity", "NaN", "0110"),
    ]
)
MODES = {
    "time.precision.mode": ["adaptive", "isostring", "nanoseconds"],
    "decimal.handling.mode": ["precise", "double"],
}


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text, other = draw(PRINTED), draw(st.text(draw(st.sampled_from(ALPHABETS)), max_size=3))
    at = draw(st.integers(0, len(text)))
    return text[:at] + other + text[at + draw(st.integers(0, 3)) :]


TEXT = st.one_of(st.none(), damaged(), st.text(max_size=6), *(st.text(letters, max_size=12) for letters in ALPHABETS))


@pytest.mark.parametrize("name", KINDS)
@search
@given(texts=st.lists(TEXT, max_size=4), skipped=st.integers(0, 1), data=st.data())
def test_any_text_is_a_value_or_an_error(name: str, texts: list[str | None], skipped: int, data: st.DataObject) -> None:
    properties = {key: data.draw(st.sampled_from(values)) for key, values in MODES.items()}
    of = kind(name.partition("(")[0], KINDS[name], {**properties, "include.unknown.datatypes": "true"})
    text = pa.array(texts, pa.string()).slice(skipped)
    try:
        found = converted(text, of, "t.c")
    except DecodeError as error:
        assert "t.c" in str(error)  # noqa: PT017  # it may raise or not
        return
    found.validate(full=True)
    assert found.type == of.arrow
    assert len(found) == len(text)
    assert all(value is None for value, given in zip(found.to_pylist(), text.to_pylist(), strict=True) if given is None)
