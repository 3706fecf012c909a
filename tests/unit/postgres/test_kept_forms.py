"""By which modes values of PostgreSQL's types are kept in other ways, which a replica's description tells."""

from __future__ import annotations

import pytest

from tailrace.connectors.postgres.types.pg_type import PgType
from tailrace.connectors.postgres.types.values import value_type
from tests.unit.postgres.test_values import config

NUMERIC, BYTEA, HSTORE = (PgType(name, name) for name in ("numeric", "bytea", "hstore"))
HEX, MAP, TEXTS = {"binary.handling.mode": "hex"}, {"hstore.handling.mode": "map"}, {"decimal.handling.mode": "string"}


@pytest.mark.parametrize(
    ("type_", "mode"),
    [
        (PgType("interval", "interval"), {"interval.handling.mode": "string"}),
        (PgType("money", "money"), {"money.fraction.digits": "1"}),
        (PgType("money", "money"), TEXTS),
        (NUMERIC, TEXTS),
        (HSTORE, MAP),
        (PgType("_numeric", "numeric[]", element=NUMERIC), TEXTS),
        (PgType("_bytea", "bytea[]", element=BYTEA), HEX),
        (PgType("_hstore", "hstore[]", element=HSTORE), MAP),
    ],
)
@pytest.mark.parametrize("keeps", ["text", "event"])
def test_another_mode_is_another_form(type_: PgType, mode: dict[str, str], keeps: str) -> None:
    forms = []
    for given in ({}, mode):
        kind = value_type(type_, -1, config({"value.loss.handling.mode": keeps, **given}))
        assert kind is not None
        forms.append(kind.form)
    assert forms[0] == "" != forms[1]
