"""sqlglot's T-SQL, with function calls and types kept as they are written.

sqlglot turns functions into neutral ones, which loses differences that matter to a server (ISNULL and COALESCE, the
parts of DATEPART, the types of CAST). Here every call is `Anonymous`, and CAST and CONVERT hold the text of their type.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from .errors import SqlError, error

CAST = "__cast"
MONEY = "__money"
EMPTY_BINARY = "__empty_binary"

# Two words that sqlglot takes as one, and the parser of definitions as two.
_SPLIT = {
    *("PRIMARY KEY", "FOREIGN KEY", "CLUSTERED INDEX", "NONCLUSTERED INDEX", "CHAR VARYING", "CHARACTER VARYING"),
    *("DOUBLE PRECISION", "UPDATE STATISTICS"),
}
_OWN_PARSERS = {"STRING_AGG"}


def _cast(parser: Any, safe: bool) -> exp.Expression:
    value = parser._parse_disjunction()
    if not parser._match(TokenType.ALIAS):
        parser.raise_error("Incorrect syntax near CAST")
    return _cast_node(value, _type_text(parser), None, safe)


def _convert(parser: Any, safe: bool) -> exp.Expression:
    declared = _type_text(parser)
    parser._match(TokenType.COMMA)
    value = parser._parse_disjunction()
    style = parser._parse_disjunction() if parser._match(TokenType.COMMA) else None
    return _cast_node(value, declared, style, safe)


def _cast_node(value: exp.Expression, declared: str, style: exp.Expression | None, safe: bool) -> exp.Expression:
    arguments = [value, exp.Literal.string(declared), style or exp.Null(), exp.Boolean(this=safe)]
    return exp.Anonymous(this=CAST, expressions=arguments)


def _type_text(parser: Any) -> str:
    """Take the tokens of a type: up to the comma or the parenthesis that ends the call."""
    words = []
    depth = 0
    while parser._curr is not None:
        kind = parser._curr.token_type
        if depth == 0 and kind in (TokenType.COMMA, TokenType.R_PAREN):
            break
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
        words.append(parser._curr.text)
        parser._advance()
    return " ".join(words)


class Dialect(TSQL):
    """T-SQL as a server reads it."""

    class Tokenizer(TSQL.Tokenizer):
        """Takes the words behind PRINT and the like as words."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(TSQL.Parser):
        """Keeps calls as they are written."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            **{name: parse for name, parse in TSQL.Parser.FUNCTION_PARSERS.items() if name in _OWN_PARSERS},
            "CAST": lambda self: _cast(self, False),
            "TRY_CAST": lambda self: _cast(self, True),
            "PARSE": lambda self: _cast(self, False),  # of texts in the forms that CAST takes, too
            "CONVERT": lambda self: _convert(self, False),
            "TRY_CONVERT": lambda self: _convert(self, True),
        }


_DIALECT = Dialect()


def tokenize(text: str) -> list[Token]:
    """The tokens of a batch; literals that sqlglot does not know become calls."""
    try:
        return _rewrite(_DIALECT.tokenize(text))
    except Exception as failure:
        raise error(105, failure) from failure


def parse_tokens(tokens: list[Token], text: str) -> exp.Expression:
    """The tree of one query or statement."""
    try:
        trees = _DIALECT.parser().parse(tokens, text)
    except ParseError as error:
        near = error.errors[0].get("highlight") if error.errors else ""
        raise SqlError(102, 15, f"Incorrect syntax near '{near}'.") from error
    if len(trees) != 1 or trees[0] is None:
        raise SqlError(102, 15, "Incorrect syntax.")
    return trees[0]


def _rewrite(tokens: list[Token]) -> list[Token]:
    out: list[Token] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.token_type == TokenType.VAR and token.text.startswith("$") and token.text[1:].isdigit():
            fraction = ""
            if position + 2 < len(tokens) and tokens[position + 1].token_type == TokenType.DOT:
                fraction = "." + tokens[position + 2].text
                position += 2
            out += _call(MONEY, token.text[1:] + fraction, token)
        elif token.token_type == TokenType.IDENTIFIER and token.text == "0x":
            out += _call(EMPTY_BINARY, None, token)
        elif token.text.upper() in _SPLIT and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            out += [_made(TokenType.VAR, word, token) for word in token.text.split()]
        else:
            out.append(token)
        position += 1
    return out


def _call(name: str, argument: str | None, at: Token) -> list[Token]:
    inner = [] if argument is None else [_made(TokenType.STRING, argument, at)]
    return [
        _made(TokenType.VAR, name, at),
        _made(TokenType.L_PAREN, "(", at),
        *inner,
        _made(TokenType.R_PAREN, ")", at),
    ]


def _made(kind: TokenType, text: str, at: Token) -> Token:
    return Token(kind, text, line=at.line, col=at.col, start=at.start, end=at.end)
