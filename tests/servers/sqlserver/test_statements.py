"""Changes, definitions, variables, procedures."""

from __future__ import annotations

from decimal import Decimal

from .conftest import Client


def test_insert_fills_identity_defaults_and_computed_columns(client: Client) -> None:
    client.run(
        "CREATE TABLE t (id INT IDENTITY(10,5) PRIMARY KEY, a INT DEFAULT 7, b VARCHAR(9) NOT NULL DEFAULT 'x',"
        " c AS (a * 2))"
    )
    assert client.run("INSERT t (b) OUTPUT inserted.id, inserted.c VALUES ('q'), (DEFAULT)") == [(10, 14), (15, 14)]
    client.run("INSERT t DEFAULT VALUES")
    assert client.run("SELECT * FROM t") == [(10, 7, "q", 14), (15, 7, "x", 14), (20, 7, "x", 14)]
    assert client.run("SELECT SCOPE_IDENTITY(), @@IDENTITY, IDENT_CURRENT('t')") == [(20, 20, 20)]
    assert client.error("INSERT t (id) VALUES (1)") == 544


def test_identity_insert_moves_the_seed(client: Client) -> None:
    client.run("CREATE TABLE t (id INT IDENTITY PRIMARY KEY, a INT)")
    client.run(
        "SET IDENTITY_INSERT t ON; INSERT t (id, a) VALUES (100, 1); SET IDENTITY_INSERT t OFF; INSERT t VALUES (2)"
    )
    assert client.run("SELECT id FROM t") == [(100,), (101,)]


def test_update_of_a_join(client: Client) -> None:
    client.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT t VALUES (1, 1), (2, 2), (3, 3)")
    client.run("UPDATE x SET a = x.a + y.a FROM t x JOIN t y ON y.id = x.id + 1 WHERE x.id < 3")
    assert client.run("SELECT a FROM t") == [(3,), (5,), (3,)]
    assert client.run("DELETE TOP (1) FROM t OUTPUT deleted.a WHERE id = 3") == [(3,)]
    assert client.run("UPDATE t SET a += 1 OUTPUT deleted.a, inserted.a WHERE id = 1") == [(3, 4)]


def test_keys_are_checked_at_the_end_of_a_statement(client: Client) -> None:
    client.run("CREATE TABLE t (id INT PRIMARY KEY); INSERT t VALUES (1), (2), (3); UPDATE t SET id = id + 1")
    assert client.run("SELECT id FROM t") == [(2,), (3,), (4,)]


def test_merge(client: Client) -> None:
    client.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(5)); INSERT t VALUES (1, 'a'), (2, 'b')")
    rows = client.run(
        "MERGE INTO t USING (VALUES (2, 'B'), (3, 'C')) s(id, a) ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a)"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE OUTPUT $action, inserted.id, deleted.id;"
    )
    assert sorted(rows, key=str) == [("DELETE", None, 1), ("INSERT", 3, None), ("UPDATE", 2, 2)]


def test_texts_compare_without_case_and_trailing_blanks(client: Client) -> None:
    client.run("CREATE TABLE t (k NVARCHAR(10) PRIMARY KEY); INSERT t VALUES ('abc')")
    assert client.error("INSERT t VALUES ('ABC  ')") == 2627
    client.run(
        "CREATE TABLE s (k VARCHAR(10) COLLATE Latin1_General_CS_AS PRIMARY KEY); INSERT s VALUES ('abc'), ('ABC')"
    )
    assert client.value("SELECT COUNT(*) FROM s WHERE k = 'abc'") == 1


def test_constraints(client: Client) -> None:
    client.run("CREATE TABLE p (id INT PRIMARY KEY); INSERT p VALUES (1)")
    client.run("CREATE TABLE c (id INT, p INT REFERENCES p(id) ON DELETE CASCADE, n INT CHECK (n > 0), UNIQUE (id))")
    assert client.error("INSERT c VALUES (1, 2, 1)") == 547
    assert client.error("INSERT c VALUES (1, 1, 0)") == 547
    client.run("INSERT c VALUES (NULL, 1, 1)")
    assert client.error("INSERT c VALUES (NULL, 1, 1)") == 2627
    assert client.error("DROP TABLE p") == 3726
    client.run("DELETE p")
    assert client.value("SELECT COUNT(*) FROM c") == 0


def test_alter_table(client: Client) -> None:
    client.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(5)); INSERT t VALUES (1, 'a')")
    client.run("ALTER TABLE t ADD b INT NOT NULL CONSTRAINT df_b DEFAULT 3, c DATETIME2 NULL")
    assert client.run("SELECT * FROM t") == [(1, "a", 3, None)]
    assert client.error("ALTER TABLE t ADD d INT NOT NULL") == 4901
    assert client.error("ALTER TABLE t DROP COLUMN b") == 4922
    client.run("ALTER TABLE t DROP CONSTRAINT df_b; ALTER TABLE t DROP COLUMN b")
    client.run("ALTER TABLE t ALTER COLUMN a NVARCHAR(20) NOT NULL; INSERT t VALUES (2, N'longer ž', NULL)")
    client.run("EXEC sp_rename 't.a', 'renamed', 'COLUMN'; EXEC sp_rename 't', 'u'")
    assert client.run("SELECT renamed FROM u") == [("a",), ("longer ž",)]
    assert client.run("SELECT name, is_nullable FROM sys.columns WHERE object_id = OBJECT_ID('u')") == [
        ("id", False),
        ("renamed", False),
        ("c", True),
    ]


def test_texts_of_defaults_in_the_catalogue(client: Client) -> None:
    client.run(
        "CREATE TABLE t (a VARCHAR(9) DEFAULT 'it''s', b INT DEFAULT 1, c INT DEFAULT -1, d DECIMAL(5,2) DEFAULT 1.50,"
        " e DATETIME DEFAULT GETDATE(), f NVARCHAR(9) DEFAULT N'x', g VARBINARY(9) DEFAULT 0x0102, h INT DEFAULT NULL,"
        " i FLOAT DEFAULT 1.5e3, j BIGINT DEFAULT 3147483648, k DATETIME2 DEFAULT CONVERT(DATETIME2, '2019-01-01'),"
        " l INT DEFAULT (1 + 2), m AS (b * 2 + c))"
    )
    found = client.run(
        "SELECT c.name, d.definition FROM sys.columns c"
        " JOIN sys.default_constraints d ON d.object_id = c.default_object_id"
        " WHERE c.object_id = OBJECT_ID('t') ORDER BY c.column_id"
    )
    assert dict(found) == {
        "a": "('it''s')",
        "b": "((1))",
        "c": "((-1))",
        "d": "((1.50))",
        "e": "(getdate())",
        "f": "(N'x')",
        "g": "(0x0102)",
        "h": "(NULL)",
        "i": "((1.5e+003))",
        "j": "((3147483648.))",
        "k": "(CONVERT([datetime2],'2019-01-01'))",
        "l": "((1)+(2))",
    }
    assert client.value("SELECT definition FROM sys.computed_columns") == "([b]*(2)+[c])"
    client.run("INSERT t DEFAULT VALUES")
    assert client.run("SELECT a, c, d, f, g, h, i, j, l, m FROM t") == [
        ("it's", -1, Decimal("1.50"), "x", b"\1\2", None, 1500.0, 3147483648, 3, 1)
    ]


def test_variables_and_control(client: Client) -> None:
    batch = """
    DECLARE @i INT = 0, @text VARCHAR(20) = ''
    WHILE @i < 5
    BEGIN
        SET @i += 1
        IF @i = 2 CONTINUE
        IF @i = 4 BREAK
        SET @text = @text + CAST(@i AS VARCHAR(9))
    END
    SELECT @text, @i
    """
    assert client.run(batch) == [("13", 4)]
    assert client.run(
        "BEGIN TRY SELECT 1 / 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_MESSAGE() END CATCH"
    ) == [(8134, "Divide by zero error encountered.")]


def test_temporary_tables_and_table_variables(client: Client) -> None:
    client.run("SELECT 1 AS a, 'x' AS b INTO #t")
    assert client.run("INSERT #t VALUES (2, 'y'); SELECT * FROM #t ORDER BY a DESC") == [(2, "y"), (1, "x")]
    assert client.run(
        "DECLARE @t TABLE (id INT IDENTITY, n NVARCHAR(5)); INSERT @t (n) VALUES ('a'); SELECT * FROM @t"
    ) == [(1, "a")]
    client.run("DROP TABLE #t")
    assert client.error("SELECT * FROM #t") == 208


def test_modules(client: Client) -> None:
    client.run("CREATE TABLE t (id INT); INSERT t VALUES (1), (2)")
    client.run("CREATE VIEW v AS SELECT id, id * 10 AS ten FROM t WHERE id > 1")
    client.run("CREATE FUNCTION dbo.twice(@x INT) RETURNS INT AS BEGIN RETURN @x * 2 END")
    client.run(
        "CREATE PROCEDURE p @x INT, @y INT = 5, @sum INT OUTPUT AS BEGIN SELECT @x; SET @sum = @x + @y; RETURN 3 END"
    )
    assert client.run("SELECT ten, dbo.twice(id) FROM v") == [(20, 4)]
    assert client.results("DECLARE @s INT, @r INT; EXEC @r = p 1, @sum = @s OUTPUT; SELECT @s, @r") == [
        [(1,)],
        [(6, 3)],
    ]
    assert client.run("EXEC sp_executesql N'SELECT @a + 1, @b', N'@a INT, @b NVARCHAR(9)', @a = 4, @b = N'z'") == [
        (5, "z")
    ]
    assert client.run("EXEC('SELECT 5')") == [(5,)]


def test_metadata_procedures(client: Client) -> None:
    client.run(
        "CREATE TABLE t (id INT IDENTITY PRIMARY KEY, n NVARCHAR(20) NULL, d DECIMAL(12,2) NOT NULL, "
        "wide NVARCHAR(MAX), x XML)"
    )
    (identity, text, number, *unlimited) = client.run("EXEC sp_columns_100 't', 'dbo', 'test_db', '%', 2, 3")
    assert identity[:8] == ("test_db", "dbo", "t", "id", 4, "int identity", 10, 4)
    assert (text[5], text[6], text[7], text[10]) == ("nvarchar", 20, 40, 1)
    assert (number[5], number[6], number[8], number[10]) == ("decimal", 12, 2, 0)
    assert [row[6] for row in unlimited] == [0, 0]
    assert [row[2:] for row in client.run("EXEC sp_tables '%', NULL, 'test_db', '''TABLE'''")] == [("t", "TABLE", None)]
    assert [row[3:5] for row in client.run("EXEC sp_pkeys 't', 'dbo', 'test_db'")] == [("id", 1)]
    assert [row[8] for row in client.run("EXEC sp_statistics_100 't', 'dbo', 'test_db', '%', 'Y', 'Q'")] == [None, "id"]


def test_a_batch_is_described_and_not_run(client: Client) -> None:
    client.run("CREATE TABLE t (id INT NOT NULL, n NVARCHAR(20)); INSERT t VALUES (1, 'a')")
    listed = "column_ordinal, name, is_nullable, system_type_name, error_number"

    def described(text: str) -> list[tuple[object, ...]]:
        return client.run(f"SELECT {listed} FROM sys.dm_exec_describe_first_result_set(N'{text}', NULL, 0)")

    found = described("DELETE FROM t; SELECT id, n AS two FROM t")
    assert found == [(1, "id", False, "int", None), (2, "two", True, "nvarchar(20)", None)]
    assert described("DELETE FROM t") == []
    assert client.value("SELECT COUNT(*) FROM t") == 1
    wrong = {
        "SELECT nowhere FROM t": 207,
        "SELECT 1) ; SELECT (2": 102,
        "SELECT 1 FROM t WHERE": 102,
        "SELECT ''a": 105,
    }
    assert {text: described(text)[0][-1] for text in wrong} == wrong
    assert described("EXEC(''SELECT 1'')")[0][-1] == 11513
