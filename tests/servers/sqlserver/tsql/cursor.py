"""A position in the tokens of a batch, and the small readers that every statement needs."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from .dialect import parse_tokens
from .errors import SqlError, syntax
from .statements import Name

STARTS = {
    *("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "DECLARE", "SET", "IF"),
    *(
        "WHILE",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVE",
        "EXEC",
        "EXECUTE",
        "PRINT",
        "RAISERROR",
        "THROW",
        "RETURN",
        "USE",
    ),
    *("BREAK", "CONTINUE", "WAITFOR", "GRANT", "DENY", "REVOKE", "ELSE", "END", "CHECKPOINT", "DBCC", "KILL", "GOTO"),
}
_SET_OPERATORS = {"UNION", "ALL", "EXCEPT", "INTERSECT"}
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NATIONAL_STRING)


def is_name(token: Token) -> bool:
    """Whether a token can be (part of) the name of something."""
    return token.token_type == TokenType.IDENTIFIER or token.text[:1].isalpha() or token.text[:1] in "_$"


class Cursor:
    """Reads tokens one after the other."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.position = 0

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.tokens)

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self.tokens[min(self.position, len(self.tokens) - 1)].line

    def peek(self, offset: int = 0) -> Token | None:
        """A token ahead, None beyond the end."""
        place = self.position + offset
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def word(self, offset: int = 0) -> str:
        """A token ahead in upper case; empty for quoted names, texts and the end."""
        token = self.peek(offset)
        return "" if token is None or token.token_type in _QUOTED else token.text.upper()

    def next(self) -> Token:
        """Take the next token."""
        token = self.peek()
        if token is None:
            raise syntax("end of batch")
        self.position += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take these words if they are next."""
        if all(self.word(offset) == word for offset, word in enumerate(words)):
            self.position += len(words)
            return True
        return False

    def accept_any(self, *words: str) -> str:
        """Take the next word if it is one of these; return it, or an empty text."""
        if self.word() in words:
            return self.next().text.upper()
        return ""

    def expect(self, *words: str) -> None:
        """Take these words; a syntax error if they are not next."""
        if not self.accept(*words):
            raise syntax(self.tokens[self.position].text if not self.at_end else "end of batch")

    # Names

    def identifier(self) -> str:
        """Take a name of one part; #temporary and @variables keep their mark."""
        mark = ""
        while self.word() in ("#", "@"):
            mark += self.next().text
        token = self.next()
        if not is_name(token):
            raise syntax(token.text)
        return mark + token.text

    def name(self) -> Name:
        """Take a name of up to four parts, such as db..table."""
        parts = [self.identifier()]
        while self.accept("."):
            parts.append("" if self.word() == "." else self.identifier())
        return tuple(parts)

    def text_value(self) -> str:
        """Take a text literal, a name or a number."""
        return self.next().text

    def names(self) -> list[str]:
        """Take a list of names in parentheses."""
        self.expect("(")
        found = [self.identifier()]
        while self.accept(","):
            found.append(self.identifier())
        self.expect(")")
        return found

    def type_text(self) -> str:
        """Take a type with its arguments."""
        words = [self.next().text]
        while self.accept("."):
            words[-1] += "." + self.next().text
        if words[0].upper() in ("NATIONAL", "DOUBLE", "CHAR", "CHARACTER", "NCHAR", "BINARY"):
            while self.word() in ("CHARACTER", "CHAR", "VARYING", "PRECISION", "TEXT"):
                words.append(self.next().text)
        if self.word() == "(":
            words += [token.text for token in self.parenthesis()]
        return " ".join(words)

    # Stretches of tokens

    def parenthesis(self) -> list[Token]:
        """Take everything from the next parenthesis to its end, both included."""
        begin = self.position
        depth = 0
        while True:
            word = self.next().token_type
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(word, 0)
            if depth == 0:
                return self.tokens[begin : self.position]

    def until(self, stop: Callable[[str], bool]) -> list[Token]:
        """Take tokens up to a word outside of parentheses and CASE at which `stop` says so, or a semicolon."""
        begin = self.position
        cases = 0
        while not self.at_end:
            word = self.word()
            if word == "(":
                self.parenthesis()
                continue
            if word in (";", ")") or (not cases and stop(word)):
                break
            cases += {"CASE": 1, "END": -1}.get(word, 0)
            self.position += 1
        return self.tokens[begin : self.position]

    def expression(self, *stops: str) -> exp.Expression:
        """Take an expression, up to one of these words or the next statement."""
        tokens = self.until(lambda word: word in stops or word in STARTS)
        if not tokens:
            raise syntax(self.word() or "end of batch")
        return self.parse(tokens)

    def query(self) -> list[Token]:
        """Take the tokens of a query, set operators included."""
        begin = self.position

        def stop(word: str) -> bool:
            if word not in STARTS or self.position == begin:
                return False
            if word == "MERGE" and self.word(1) == "JOIN":
                return False
            return not (word == "SELECT" and self.word(-1) in _SET_OPERATORS)

        return self.until(stop)

    def parse(self, tokens: list[Token]) -> exp.Expression:
        """The tree of tokens: of an expression or a query."""
        if not tokens:
            raise SqlError(102, 15, "Incorrect syntax: an expression is missing.")
        return parse_tokens(tokens, self.text)

    def made(self, text: str, kind: TokenType = TokenType.VAR) -> Token:
        """A token that is not in the text, at the place of the next one."""
        at = self.tokens[min(self.position, len(self.tokens) - 1)]
        return Token(kind, text, line=at.line, col=at.col, start=at.start, end=at.end)

    def rest(self) -> str:
        """The text from the next token on."""
        token = self.peek()
        return "" if token is None else self.text[token.start :]
