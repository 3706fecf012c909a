"""SQL of a signal: what is taken, what is refused, and that what is sent cannot leave its place on any server."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.connectors.db2.user_text import GRAMMAR as DB2
from tailrace.connectors.sqlserver.user_text import GRAMMAR as TSQL
from tailrace.connectors.user_text import Grammar
from tailrace.errors import SignalError

BOTH = pytest.mark.parametrize("grammar", [TSQL, DB2], ids=["sqlserver", "db2"])


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        "id = 1",
        "id=1 and not (v<2 or note is null)",
        "note LIKE N'%''x' ESCAPE '!'",
        'id IN (SELECT "id" FROM t WHERE v >= ALL (SELECT 1 FROM u))',
        "EXISTS (SELECT 1 FROM a JOIN b ON a.x = b.y WHERE a.z BETWEEN 1 AND 2.5e3)",
        "CASE WHEN id = 1 THEN 2 ELSE 3 END = - -2",
        "CAST(d AS date) = '2024-01-01'",
        "note = 'a;b -- c /* d'",
        "((((id = 1))))",
    ],
)
def test_conditions_are_taken(grammar: Grammar, text: str) -> None:
    written = grammar.condition(text)
    assert re.sub(r'[\s\[\]"]', "", written) == re.sub(r'[\s\[\]"]', "", text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('[a]]b] = 1 AND "c""d" = 2', '[a]]b] = 1 AND [c"d] = 2'),
        ("id = 1 -- all\n AND v = 2 /* of\nit */", "id = 1 AND v = 2"),
        ("[inj] . [dbo].items.id=0x1F", "[inj].[dbo].items.id = 0x1F"),
        ("v & 4 = 4 AND v % 2 <> 1 AND v = -1", "v & 4 = 4 AND v % 2 <> 1 AND v = - 1"),
        ("DATEDIFF(day, a, b) > ISNULL(c, 3)", "DATEDIFF ( day , a , b ) > ISNULL ( c , 3 )"),
        ("x.value('(/a/b)[1]', 'int') = 5", "x.value ( '(/a/b)[1]' , 'int' ) = 5"),
        ("name = N'Ёлка'", "name = N'Ёлка'"),
    ],
)
def test_what_is_sent_to_sql_server_has_the_same_tokens(text: str, written: str) -> None:
    assert TSQL.condition(text) == written


@pytest.mark.parametrize(
    "text",
    [
        "d > CURRENT DATE - 7 DAYS",
        "b = X'00' AND g = G'x' AND u = U&'\\0041'",
        "(a, b) IN (VALUES (1, 2))",
        "FLAG",
        '"UPDATE" = 1',
    ],
)
def test_conditions_of_db2_are_taken(text: str) -> None:
    assert DB2.condition(text).replace(" ", "") == text.replace(" ", "")


HOSTILE = [
    "",
    " ",
    "-- nothing",
    "1=1); DELETE FROM [victim]; SELECT 1 WHERE (1=1",
    "1=1; DELETE FROM victim",
    "1=1)\nDELETE FROM victim\nSELECT 1 WHERE (1=1",
    "1=1) DELETE FROM victim SELECT 1 WHERE (1=1",
    "1=1 EXEC('DELETE FROM victim')",
    "1=1) EXEC('DELETE FROM victim') SELECT 1 WHERE (1=1",
    "1=1) OR (1=1",
    "(1=1",
    "1=1)",
    "1=1 THEN 1 END FROM t; DELETE FROM victim; SELECT CASE WHEN 1=1",
    "1=1 UNION SELECT 1",
    "1=1) UNION ALL SELECT 1 WHERE (1=1",
    "SELECT 1",
    "id = 1 x",
    "id = 1, id = 2",
    "EXISTS (SELECT 1 INTO stolen FROM victim)",
    "EXISTS (DELETE FROM victim OUTPUT deleted.*)",
    "EXISTS (SELECT * FROM FINAL TABLE (DELETE FROM victim))",
    "EXISTS (SELECT * FROM OLD TABLE (UPDATE victim SET id = 1))",
    "id = NEXT VALUE FOR numbers",
    "1=1 /*",
    "1=1 /* a /* b */ ; DELETE FROM victim -- */",
    "1=1 /* a */ */",
    "1=1 -- \r; DELETE FROM victim",
    "1=1 -- \u2028; DELETE FROM victim",
    "note = 'x",
    "note = 'x''",
    'note = "x',
    "note = 'x' OR \"y",
    "note = \u2018x\u2019",
    "note = '\u02bc; DELETE FROM victim; --'",
    "note = '\uff07 OR 1=1'",
    "note = 'x\x00'",
    "1=1\x00; DELETE FROM victim",
    "1=1\u00a0OR 1=1",
    "1=1\u3000OR 1=1",
    "note = '\ud800'",
    "1=1 \\\n OR 1=1",
    "{fn USER()} = 'x'",
    "{call wipe()}",
    "id = ?",
    "id = :x",
    "id = @x",
    "id = `x`",
    "id = $$x$$",
    "id = 1x",
    "id = 1..2",
    "f(" * 31 + "1" + ")" * 31 + " = 1",
    "NOT " * 5000 + "1=1",
    "CASE WHEN " * 200 + "1=1" + " THEN 1 END" * 200,
    "WAITFOR DELAY '1'",
    "1=1 FOR UPDATE",
    "ROLLBACK",
    "1=1 COMMIT",
    "имя = 1",
]


@BOTH
@pytest.mark.parametrize("text", HOSTILE)
def test_no_condition_is_more_than_an_expression(grammar: Grammar, text: str) -> None:
    with pytest.raises(SignalError, match=r"the SQL of the signal is refused, .*\n  Remedy: "):
        grammar.condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "[id = 1",
        "id] = 1",
        "[a]]; DELETE FROM victim; --] = 1 OR [b",
        "EXISTS (SELECT * FROM OPENROWSET('SQLNCLI', 'x', 'DELETE FROM victim'))",
        "EXISTS (SELECT * FROM OPENQUERY(loopback, 'DELETE FROM victim; SELECT 1'))",
        "EXISTS (SELECT * FROM victim WITH (TABLOCKX, HOLDLOCK))",
        "id = 0x1G",
        "@@TRANCOUNT = 1",
        "#temporary.id = 1",
    ],
)
def test_no_condition_uses_what_only_sql_server_has(text: str) -> None:
    with pytest.raises(SignalError):
        TSQL.condition(text)


@pytest.mark.parametrize(
    "text",
    ["[id] = 1", "id = numbers.NEXTVAL", "EXISTS (SELECT * FROM t WITH RS USE AND KEEP EXCLUSIVE LOCKS)", "CALL p()"],
)
def test_no_condition_uses_what_only_db2_has(text: str) -> None:
    with pytest.raises(SignalError):
        DB2.condition(text)


@BOTH
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("SELECT * FROM t", "SELECT * FROM t"),
        (" SELECT a,b FROM t WHERE id<3 ; \n", "SELECT a , b FROM t WHERE id < 3"),
        ("SELECT a FROM t UNION ALL SELECT b FROM u", "SELECT a FROM t UNION ALL SELECT b FROM u"),
        ("SELECT a FROM (SELECT 1 AS a) x ORDER BY a -- all", "SELECT a FROM ( SELECT 1 AS a ) x ORDER BY a"),
    ],
)
def test_queries_are_taken(grammar: Grammar, text: str, written: str) -> None:
    assert grammar.query(text) == written


@BOTH
@pytest.mark.parametrize(
    "text",
    [
        *(text for text in HOSTILE if text != "SELECT 1"),
        "SELECT 1; DELETE FROM victim",
        "SELECT 1\nDELETE FROM victim",
        "SELECT 1 SELECT 2",
        "SELECT * FROM t) AS x; DELETE FROM victim; SELECT * FROM (SELECT * FROM t",
        "SELECT * INTO stolen FROM victim",
        "DELETE FROM victim",
        "EXEC wipe",
        "BEGIN TRANSACTION",
        "WITH gone AS (DELETE FROM victim RETURNING id) SELECT * FROM gone",
        "SELECT * FROM FINAL TABLE (INSERT INTO victim VALUES (1))",
        "id = 1",
    ],
)
def test_no_query_is_more_than_one_that_reads(grammar: Grammar, text: str) -> None:
    with pytest.raises(SignalError):
        grammar.query(text)


# What may end a literal, a name, a comment or a parenthesis, or begin a statement, between harmless parts.
SIGNS = "'\"[](),;.-*/\\\n\r\t =<>!{}?@#$%&|^~`\x00\u2019\u02bc\uff07\u00a0"
PARTS = ("''", '""', "]]", "--", "/*", "*/", "N'", "X'", "id", "1", "1=1", "AND", "OR", "FROM", "victim", "SELECT")
PIECES = st.sampled_from([*SIGNS, *PARTS, "DELETE", "EXEC", "WAITFOR", "GO", "0x", "e1", "\u00e9"])


@BOTH
@settings(max_examples=int(os.environ.get("TAILRACE_FUZZ_EXAMPLES", "200")), deadline=None)
@given(pieces=st.lists(PIECES, max_size=14), spaced=st.booleans())
def test_what_is_sent_stays_in_its_parentheses(grammar: Grammar, pieces: list[str], *, spaced: bool) -> None:
    text = (" " if spaced else "").join(pieces)
    try:
        written = grammar.condition(text)
    except SignalError:
        return
    assert is_contained(written), (text, written)
    assert grammar.condition(written) == written


def is_contained(text: str) -> bool:
    """Whether a text, read character by character as a server does it, ends where it began and has one statement."""
    depth, at, plain = 0, 0, ""
    ends = {"'": "'", '"': '"', "[": "]"}
    while at < len(text):
        character = text[at]
        if character in ends:
            at += 1
            while text[at] != ends[character] or text[at : at + 2] == 2 * ends[character]:
                at += 2 if text[at] == ends[character] else 1
        elif text[at : at + 2] in ("--", "/*", "*/") or character in ";\\{}?`\n\r":
            return False
        else:
            plain += character
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
        at += 1
    return depth == 0 and not re.search(r"(?<![\w@#$])DELETE(?![\w@#$])", plain)
