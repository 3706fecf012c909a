"""The faults of the reference engine that `compat.faults` repeats, and what a configuration may ask for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tailrace
from tailrace.config.faults import ALL_FAULTS, FAULTS, NO_FAULTS, Fault, Faults
from tailrace.config.kinds import InvalidValue
from tailrace.connectors.registry import BUILT_IN

SOURCE, RECORDINGS = Path(tailrace.__file__).parent, Path(__file__).parents[2] / "golden"
FILE = SOURCE / "config" / "faults.py"
READ = {
    name
    for module in SOURCE.rglob("*.py")
    if module != FILE
    for name in re.findall(r"\bFault\.([A-Z0-9_]+) (?:not )?in\b", module.read_text(encoding="utf-8"))
}


def test_each_fault_is_read_by_code() -> None:
    assert {fault.name for fault in Fault} == READ, "delete from config/faults.py what no code asks for"


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_a_recording_shows_each_fault(fault: Fault) -> None:
    folder = RECORDINGS / fault.value.recording
    assert (folder / "expected.jsonl").exists(), "record what shows it (tests/golden/README.md), or delete it"
    assert folder.parent.name in fault.value.connectors
    assert set(fault.value.connectors) <= set(BUILT_IN)


def test_a_fault_is_said_in_one_sentence() -> None:
    effects = [fault.value.effect for fault in Fault]
    assert all(effect.endswith(".") and ". " not in effect for effect in effects)
    assert len(set(effects)) == len(effects)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("true", ALL_FAULTS),
        (" FALSE ", NO_FAULTS),
        ("null_names", {Fault.NULL_NAMES}),
        ("null_names, DRIVER_DATES", {Fault.NULL_NAMES, Fault.DRIVER_DATES}),
    ],
)
def test_all_faults_none_or_some_can_be_asked_for(text: str, faults: Faults) -> None:
    assert FAULTS.parse(text) == faults


def test_a_name_that_is_no_fault_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidValue, match="NULL_NAME is none") as caught:
        FAULTS.parse("driver_dates,null_name")
    assert caught.value.remedy is not None
    assert "null_names" in caught.value.remedy
