"""Parses a batch into statements."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ..datatypes import parse as parse_type
from . import statements as s
from .cursor import STARTS, Cursor, is_name
from .definitions import DEFINITIONS, table_elements
from .dialect import tokenize
from .errors import syntax, unsupported

_TRANSACTION_WORDS = ("TRAN", "TRANSACTION", "WORK")


@lru_cache(maxsize=512)
def parse_cached(text: str) -> tuple[s.Statement, ...]:
    """The statements of a batch that may come again."""
    return tuple(_parse(text))


def parse(text: str) -> tuple[s.Statement, ...]:
    """The statements of a batch."""
    return parse_cached(text) if len(text) < 10_000 else tuple(_parse(text))


def parse_expression(text: str) -> exp.Expression:
    """The tree of an expression's text."""
    cursor = Cursor(tokenize(text), text)
    return cursor.parse(cursor.tokens)


def _parse(text: str) -> list[s.Statement]:
    tokens = tokenize(text)
    if not tokens:
        return []
    return _Parser(Cursor(tokens, text)).statements()


class _Parser:
    """Reads the statements from the tokens of one batch."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def statements(self, *ends: str) -> list[s.Statement]:
        """Statements up to one of the words that end a block, or all."""
        found = []
        while True:
            while self.cursor.accept(";"):
                pass
            if self.cursor.at_end or self.cursor.word() in ends:
                return found
            found.append(self.statement())

    def statement(self) -> s.Statement:
        """One statement."""
        cursor = self.cursor
        line = cursor.line
        parse = self._readers().get(cursor.word())
        token = cursor.peek()
        if parse is not None:
            found = parse()
        elif cursor.word() in DEFINITIONS:
            found = DEFINITIONS[cursor.word()](cursor)
        elif cursor.position == 0 and token is not None and is_name(token):
            found = self._execute(named=True)
        else:
            raise syntax("" if token is None else token.text)
        found.line = line
        cursor.accept(";")
        return found

    def _readers(self) -> dict[str, Callable[[], s.Statement]]:
        return {
            "SELECT": self._select,
            "(": self._select,
            "WITH": self._with,
            "INSERT": self._insert,
            "UPDATE": self._update,
            "DELETE": self._delete,
            "MERGE": self._merge,
            "DECLARE": self._declare,
            "SET": self._set,
            "IF": self._if,
            "WHILE": self._while,
            "BEGIN": self._begin,
            "COMMIT": self._transaction,
            "ROLLBACK": self._transaction,
            "SAVE": self._transaction,
            "EXEC": self._execute,
            "EXECUTE": self._execute,
            "USE": self._use,
            **dict.fromkeys(
                ("PRINT", "RETURN", "BREAK", "CONTINUE", "RAISERROR", "THROW", "WAITFOR", "CHECKPOINT"), self._simple
            ),
        }

    # Queries and changes

    def _select(self, prefix: list[Token] | None = None) -> s.Statement:
        tree = self.cursor.parse((prefix or []) + self.cursor.query())
        sets = isinstance(tree, exp.Select) and any(
            isinstance(item, exp.EQ) and isinstance(item.this, exp.Parameter) for item in tree.expressions
        )
        return s.Select(tree) if sets else s.Query(tree)

    def _with(self) -> s.Statement:
        begin = self.cursor.position
        self.cursor.until(lambda word: word in ("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE"))
        prefix = self.cursor.tokens[begin : self.cursor.position]
        readers = {"SELECT": self._select, "INSERT": self._insert, "UPDATE": self._update, "DELETE": self._delete}
        if self.cursor.word() not in readers:
            raise unsupported("WITH before " + self.cursor.word())
        return readers[self.cursor.word()](prefix)

    def _top(self) -> exp.Expression | None:
        if not self.cursor.accept("TOP"):
            return None
        if self.cursor.word() == "(":
            return self.cursor.parse(self.cursor.parenthesis())
        return self.cursor.parse([self.cursor.next()])

    def _output(self, *stops: str) -> s.Output | None:
        cursor = self.cursor
        if not cursor.accept("OUTPUT"):
            return None
        tokens = cursor.until(lambda word: word in (*stops, "INTO", "FROM", "WHERE") or word in STARTS)
        output = s.Output(cursor.parse([cursor.made("SELECT", TokenType.SELECT), *tokens]))
        if cursor.accept("INTO"):
            output.into = cursor.name()
            output.into_columns = cursor.names() if cursor.word() == "(" else None
        return output

    def _hints(self) -> None:
        if self.cursor.word() == "WITH" and self.cursor.word(1) == "(":
            self.cursor.next()
            self.cursor.parenthesis()

    def _insert(self, prefix: list[Token] | None = None) -> s.Statement:
        cursor = self.cursor
        cursor.expect("INSERT")
        top = self._top()
        cursor.accept("INTO")
        target = cursor.name()
        self._hints()
        columns = cursor.names() if cursor.word() == "(" and cursor.word(1) != "SELECT" else None
        output = self._output("VALUES", "DEFAULT", "SELECT", "EXEC", "EXECUTE", "WITH")
        if cursor.accept("DEFAULT", "VALUES"):
            return s.Insert(target, columns, None, output, top)
        if cursor.word() in ("EXEC", "EXECUTE"):
            return s.Insert(target, columns, self._execute(), output, top)
        if cursor.word() == "VALUES":
            return s.Insert(target, columns, self._values(), output, top)
        return s.Insert(target, columns, cursor.parse((prefix or []) + cursor.query()), output, top)

    def _values(self) -> exp.Expression:
        cursor = self.cursor
        tokens = cursor.until(lambda word: word in STARTS or word == "OPTION")
        select = [
            cursor.made("SELECT", TokenType.SELECT),
            cursor.made("*", TokenType.STAR),
            cursor.made("FROM", TokenType.FROM),
        ]
        left, right = cursor.made("(", TokenType.L_PAREN), cursor.made(")", TokenType.R_PAREN)
        return cursor.parse([*select, left, *tokens, right, cursor.made("v")])

    def _update(self, prefix: list[Token] | None = None) -> s.Statement:
        cursor = self.cursor
        cursor.expect("UPDATE")
        top = self._top()
        begin = cursor.position
        target = cursor.name()
        self._hints()
        named = cursor.tokens[begin : cursor.position]
        cursor.expect("SET")
        assignments = [self._assignment()]
        while cursor.accept(","):
            assignments.append(self._assignment())
        output = self._output()
        return s.Change("UPDATE", target, self._rows(prefix, named), assignments, output, top)

    def _assignment(self) -> tuple[str, exp.Expression]:
        cursor = self.cursor
        begin = cursor.position
        name = cursor.name()[-1]
        target = cursor.tokens[begin : cursor.position]
        operator = [cursor.next()] if cursor.word() != "=" else []
        cursor.expect("=")
        value = cursor.until(lambda word: word in (",", "OUTPUT", "FROM", "WHERE", "OPTION") or word in STARTS)
        if len(value) == 1 and value[0].text.upper() == "DEFAULT":
            return name, exp.Var(this="DEFAULT")
        if operator:
            left, right = cursor.made("(", TokenType.L_PAREN), cursor.made(")", TokenType.R_PAREN)
            value = [*target, *operator, left, *value, right]
        return name, cursor.parse(value)

    def _delete(self, prefix: list[Token] | None = None) -> s.Statement:
        cursor = self.cursor
        cursor.expect("DELETE")
        top = self._top()
        cursor.accept("FROM")
        begin = cursor.position
        target = cursor.name()
        self._hints()
        named = cursor.tokens[begin : cursor.position]
        output = self._output()
        return s.Change("DELETE", target, self._rows(prefix, named), [], output, top)

    def _rows(self, prefix: list[Token] | None, target: list[Token]) -> exp.Select:
        """The query over FROM and WHERE of an UPDATE or DELETE; without FROM it is over the target."""
        cursor = self.cursor
        source = [] if cursor.word() == "FROM" else [cursor.made("FROM", TokenType.FROM), *target]
        tokens = cursor.until(lambda word: word in STARTS)
        head = [cursor.made("SELECT", TokenType.SELECT), cursor.made("1", TokenType.NUMBER)]
        tree = cursor.parse([*(prefix or []), *head, *source, *tokens])
        if not isinstance(tree, exp.Select):
            raise syntax("FROM")
        return tree

    def _merge(self) -> s.Statement:
        tokens = self.cursor.until(lambda word: False)
        tree = self.cursor.parse(tokens)
        if not isinstance(tree, exp.Merge):
            raise syntax("MERGE")
        returning = tree.args.get("returning")
        output = s.Output(exp.Select(expressions=returning.expressions)) if returning is not None else None
        return s.Merge(tree, output)

    # Variables and control

    def _variable(self) -> str:
        self.cursor.expect("@")
        return "@" + self.cursor.next().text

    def _declare(self) -> s.Statement:
        cursor = self.cursor
        cursor.expect("DECLARE")
        found = []
        while True:
            name = self._variable()
            cursor.accept("AS")
            if cursor.accept("TABLE"):
                columns, constraints = table_elements(cursor)
                return s.DeclareTable(name, s.CreateTable((name,), columns, constraints))
            declared = cursor.type_text()
            value = cursor.expression(",") if cursor.accept("=") else None
            try:
                kind = parse_type(declared)
            except KeyError:
                kind = tuple(declared.split("."))
            found.append((name, kind, value))
            if not cursor.accept(","):
                return s.Declare(found)

    def _set(self) -> s.Statement:
        cursor = self.cursor
        cursor.expect("SET")
        if cursor.word() == "@":
            begin = cursor.position
            name = self._variable()
            target = cursor.tokens[begin : cursor.position]
            operator = [cursor.next()] if cursor.word() != "=" else []
            cursor.expect("=")
            tokens = cursor.until(lambda word: word in STARTS)
            if operator:
                left, right = cursor.made("(", TokenType.L_PAREN), cursor.made(")", TokenType.R_PAREN)
                tokens = [*target, *operator, left, *tokens, right]
            return s.SetVariable(name, cursor.parse(tokens))
        tokens = cursor.until(lambda word: word in STARTS)
        return s.SetOption([token.text for token in tokens])

    def _if(self) -> s.Statement:
        cursor = self.cursor
        cursor.expect("IF")
        condition = cursor.expression()
        then = self.statement()
        while cursor.word() == ";":
            cursor.next()
        otherwise = self.statement() if cursor.accept("ELSE") else None
        return s.If(condition, then, otherwise)

    def _while(self) -> s.Statement:
        self.cursor.expect("WHILE")
        condition = self.cursor.expression()
        return s.While(condition, self.statement())

    def _begin(self) -> s.Statement:
        cursor = self.cursor
        if cursor.word(1) in (*_TRANSACTION_WORDS, "DISTRIBUTED"):
            return self._transaction()
        cursor.expect("BEGIN")
        if cursor.accept("TRY"):
            body = self.statements("END")
            cursor.expect("END", "TRY")
            cursor.accept(";")
            cursor.expect("BEGIN", "CATCH")
            handler = self.statements("END")
            cursor.expect("END", "CATCH")
            return s.TryCatch(body, handler)
        body = self.statements("END")
        cursor.expect("END")
        return s.Block(body)

    def _transaction(self) -> s.Statement:
        cursor = self.cursor
        action = cursor.next().text.upper()
        cursor.accept("DISTRIBUTED")
        cursor.accept_any(*_TRANSACTION_WORDS)
        token = cursor.peek()
        name = None
        if token is not None and token.text != ";" and cursor.word() not in STARTS and cursor.word() != "WITH":
            name = cursor.identifier()
        if cursor.word() == "WITH":
            cursor.next()
            cursor.parenthesis()
        return s.Transaction(action, name)

    def _use(self) -> s.Statement:
        self.cursor.expect("USE")
        return s.Use(self.cursor.identifier())

    def _simple(self) -> s.Statement:
        cursor = self.cursor
        word = cursor.next().text.upper()
        if word in ("BREAK", "CONTINUE", "CHECKPOINT"):
            return s.Simple(word, [])
        if word == "WAITFOR":
            word += " " + cursor.next().text.upper()
        tokens = cursor.until(lambda word: word in STARTS)
        if word == "RAISERROR":
            tokens = tokens[1:]
            inner = Cursor(tokens[: _closing(tokens)], cursor.text)
        else:
            inner = Cursor(tokens, cursor.text)
        arguments = []
        while not inner.at_end:
            arguments.append(inner.expression(","))
            inner.accept(",")
        return s.Simple(word, arguments)

    # Procedures

    def _execute(self, *, named: bool = False) -> s.Statement:
        cursor = self.cursor
        if not named:
            cursor.next()
        if cursor.word() == "(":
            return s.ExecuteText(cursor.parse(cursor.parenthesis()))
        returns = None
        if cursor.word() == "@" and cursor.word(2) == "=":
            returns = self._variable()
            cursor.next()
        procedure = cursor.name()
        arguments = []
        while not cursor.at_end and cursor.word() not in STARTS and cursor.word() not in (";", "WITH"):
            arguments.append(self._argument())
            if not cursor.accept(","):
                break
        if cursor.accept("WITH"):
            cursor.until(lambda word: word in STARTS)
        return s.Execute(procedure, arguments, returns)

    def _argument(self) -> s.Argument:
        cursor = self.cursor
        name = None
        if cursor.word() == "@" and cursor.word(2) == "=":
            name = self._variable()
            cursor.next()
        tokens = cursor.until(lambda word: word in (",", "OUTPUT", "OUT", "WITH") or word in STARTS)
        output = bool(cursor.accept_any("OUTPUT", "OUT"))
        if len(tokens) == 1 and tokens[0].text.upper() == "DEFAULT":
            return s.Argument(name, None)
        if (
            len(tokens) == 1
            and tokens[0].token_type not in (TokenType.STRING, TokenType.NATIONAL_STRING)
            and is_name(tokens[0])
        ):
            word = tokens[0].text
            value = exp.Null() if word.upper() == "NULL" else exp.National(this=word)
            return s.Argument(name, value, output)
        return s.Argument(name, cursor.parse(tokens), output)


def _closing(tokens: list[Token]) -> int:
    """Where the arguments of RAISERROR end: before WITH."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            return place
    return len(tokens)
