"""What `tailrace reconcile` prints, and the exit codes of what was found."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tailrace.cli import reconcile
from tailrace.pipeline.reconcile import ReconcileReport


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["equal", "equal"], 0),
        (["equal", "different", "undecided"], 1),
        (["equal", "undecided"], 3),
        (["not compared"], 3),
        (["equal", "equal in part"], 0),
        (["equal", "no table of the source"], 3),
    ],
)
def test_exit_codes(outcomes: list[str], code: int) -> None:
    assert reconcile.code([ReconcileReport("public.t", outcome) for outcome in outcomes]) == code


def test_a_report_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(reconcile, "results", Console(file=output, width=120))
    report = ReconcileReport(
        "public.[t]",
        "different",
        None,
        2_000_000,
        target_rows=1_999_999,
        ranges=16384,
        ranges_different=2,
        missing=1,
        surplus=2,
    )
    report.keys = {"missing": [{"a": 1, "b": "[x]"}], "surplus": [{"a": 2, "b": None}, {"a": 3, "b": ""}]}
    same = ReconcileReport("public.same", "equal", None, 7_000, target_rows=7_000, ranges=1, ranges_different=0)
    partly = ReconcileReport("public.partly", "equal in part", not_compared={"at[]": "compared without its zone"})
    lacking = ReconcileReport("public.lacking", "equal", state="incomplete", why=["a partition was attached"])
    masked = ReconcileReport("public.masked", "equal", None, 7, configured={"code[]": "its values are masked"})
    found = [masked, report, ReconcileReport("public.u", reason="no [reason]"), same, partly, lacking]
    for each in found:
        reconcile.results.print(reconcile.table(each))  # type: ignore[attr-defined]
    reconcile.advise(found, repaired=False)
    text = output.getvalue()
    assert re.search(r"^public\.same +equal  7,000 rows *$", text, re.MULTILINE), "a line for what is equal"
    assert "7,000 in the source" not in text
    assert "public.[t]" in text
    assert "2,000,000 in the source, 1,999,999 in the replica" in text
    assert re.search(r"missing +1: a=1, b=\[x\]", text)
    assert "a=2, b=None; a=3, b=" in text
    assert "no [reason]" in text
    assert re.search(r"public\.partly +equal in part", text)
    assert re.search(r"at\[\] +compared without its zone", text)
    assert re.search(r"public\.masked +equal *\n +code\[\] +its values are masked", text)
    assert re.search(r"public\.lacking +equal +incomplete", text)
    assert "a partition was attached" in text
    assert "With --repair" in text
