"""What is kept out of a report, and what is not."""

from __future__ import annotations

import pytest

from tailrace.connectors.probe import Expectation
from tailrace.verify.redaction import Redaction
from tests.servers.golden import differences


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the database Shop of SA", "the database <name> of <name>"),
        ("same shopping", "same shopping"),
        ("db.example.com:5432/shop", "<name>:5432/<name>"),
        ("at 10.1.2.3:1433", "at <address>"),
        ("15.0.2000.5", "15.0.2000.5"),
        ("2001:db8:0:1::5 refuses", "<address> refuses"),
        ("see postgresql://u:p@h/d there", "see <address> there"),
        ("code -30081 08001", "code -30081 08001"),
        ("p@ss.w*rd", "<name>"),
    ],
)
def test_private_words_and_addresses_are_replaced(text: str, shown: str) -> None:
    redaction = Redaction(["shop", "sa", "db.example.com", "p@ss.w*rd", ""])
    assert redaction.of({"a": [text, 1, None, True]}) == {"a": [shown, 1, None, True]}


def test_an_expectation_holds_for_its_values_and_for_no_others() -> None:
    assert Expectation("f", (1, "x")).holds({"f": "x"})
    assert not Expectation("f", (None,)).holds({})
    assert Expectation("f", most=5).holds({"f": 5})
    assert not Expectation("f", most=5).holds({"f": "none"})


def test_reports_are_compared_by_what_both_servers_answered() -> None:
    def report(**probes: tuple[str, object]) -> dict[str, object]:
        entries = [{"name": name, "outcome": outcome, "found": found} for name, (outcome, found) in probes.items()]
        return {"probes": entries}

    golden = report(a=("differs", {"x": 1}), b=("as expected", {"x": 1}), c=("skipped", {}), d=("noted", {"x": 1}))
    other = report(
        a=("differs", {"x": 1}), b=("as expected", {"x": 2}), c=("noted", {"x": 3}), d=("error", {"error": "1"})
    )
    assert differences(golden, other) == ["b: {'x': 1} there, {'x': 2} here", "d: {'x': 1} there, {'error': '1'} here"]
    assert differences(golden, golden) == []
