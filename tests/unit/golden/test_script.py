"""Scenario scripts are split at the right places."""

from tests.golden.script import Directive, Statement, split


def steps(text: str) -> list[str | tuple[str, str]]:
    return [step.text if isinstance(step, Statement) else (step.name, step.argument) for step in split(text)]


def test_statements_end_at_semicolons_outside_quotes() -> None:
    assert steps("INSERT INTO t VALUES ('a;''b'); SELECT \"x;\"\"y\";") == [
        "INSERT INTO t VALUES ('a;''b')",
        'SELECT "x;""y"',
    ]


def test_dollar_quotes_hold_whole_programs() -> None:
    body = "DO $x$ BEGIN PERFORM 1; PERFORM $$;$$; END $x$"
    assert steps(f"{body};SELECT 1") == [body, "SELECT 1"]


def test_comments_are_dropped_and_directives_kept_in_their_place() -> None:
    text = "-- why; it is\nSELECT 1 /* ; */ + 2;\n-- @wait\n--@sleep 0.5 \nSELECT 3;\n-- @session two\n"
    assert steps(text) == ["SELECT 1  + 2", ("wait", ""), ("sleep", "0.5"), "SELECT 3", ("session", "two")]


def test_empty_statements_are_none() -> None:
    assert steps(" ;;\n -- nothing\n ; ") == []


def test_directives_are_values() -> None:
    assert list(split("-- @stop")) == [Directive("stop")]
