"""The tokens of a text with one or more statements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ._errors import KuzuError, parser_error

NAME = "name"
QUOTED = "quoted"
STRING = "string"
NUMBER = "number"
PARAMETER = "parameter"
SYMBOL = "symbol"

_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|//[^\n]*|/\*.*?\*/)+)
  | (?P<name>[^\W\d]\w*)
  | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>(?:`[^`]*`)+)
  | (?P<parameter>\$(?:\w+|(?:`[^`]*`)+))
  | (?P<range>\.\.)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<open>['"`]|/\*)
  | (?P<symbol><=|>=|<>|=~|\+=|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Token(NamedTuple):
    """A token and its place in the text."""

    kind: str
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, which are in capitals, and not quoted."""
        return self.kind == NAME and self.text.upper() in words

    @property
    def is_name(self) -> bool:
        """Whether it can be the name of something."""
        return self.kind in (NAME, QUOTED)

    @property
    def name(self) -> str:
        """The name that it is."""
        return unquoted(self.text)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, without space and comments.

    :raises KuzuError: if a string, a quoted name or a comment does not end
    """
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or SYMBOL
        if kind == "space":
            continue
        if kind == "open":
            what = {"/*": "comment", "`": "quoted name"}.get(match.group(), "string")
            raise parser_error(f"the {what} does not end ({place(text, match.start())})")
        if kind == "range":
            kind = SYMBOL
        tokens.append(Token(kind, match.group(), match.start(), match.end()))
    return tokens


def split(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each statement, without semicolons and empty statements."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == SYMBOL and token.text == ";":
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def unquoted(text: str) -> str:
    """A name, without the backticks around it."""
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def quoted(name: str) -> str:
    """A name as a query has it."""
    return "`" + name.replace("`", "``") + "`"


def string_value(token: Token) -> str:
    """What a string literal means."""

    def character(match: re.Match[str]) -> str:
        code = match.group(1)
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPED.get(code.lower(), code)

    return _ESCAPE.sub(character, token.text[1:-1])


def place(text: str, offset: int) -> str:
    """Where something is in a text, for people."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return f"line {line}, column {column}"


class Cursor:
    """A position in the tokens of a statement, for parsers."""

    def __init__(self, text: str, tokens: Sequence[Token], position: int = 0) -> None:
        self.text = text
        self.tokens = tokens
        self.position = position

    @property
    def current(self) -> Token | None:
        """The next token, ``None`` at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def peek(self, ahead: int = 1) -> Token | None:
        """A token after the next one."""
        position = self.position + ahead
        return self.tokens[position] if position < len(self.tokens) else None

    def words(self, *words: str) -> bool:
        """Takes these words, if all of them come next."""
        if not self.at_words(*words):
            return False
        self.position += len(words)
        return True

    def at_words(self, *words: str) -> bool:
        """Whether these words come next."""
        following = self.tokens[self.position : self.position + len(words)]
        return len(following) == len(words) and all(
            token.is_word(word) for token, word in zip(following, words)
        )

    def symbol(self, text: str) -> bool:
        """Takes a symbol, if it comes next."""
        token = self.current
        if token is None or token.kind != SYMBOL or token.text != text:
            return False
        self.position += 1
        return True

    def take(self, kind: str) -> Token | None:
        """Takes a token of a kind, if one comes next."""
        token = self.current
        if token is None or token.kind != kind:
            return None
        self.position += 1
        return token

    def name(self, what: str) -> str:
        """Takes a name."""
        token = self.current
        if token is None or not token.is_name or not token.name:
            raise self.unexpected(what)
        self.position += 1
        return token.name

    def string(self, what: str) -> str:
        """Takes a string."""
        token = self.take(STRING)
        if token is None:
            raise self.unexpected(what)
        return string_value(token)

    def expect_words(self, *words: str) -> None:
        """Takes these words, which have to come next."""
        if not self.words(*words):
            raise self.unexpected(" ".join(words))

    def expect(self, symbol: str) -> None:
        """Takes a symbol, which has to come next."""
        if not self.symbol(symbol):
            raise self.unexpected(f"'{symbol}'")

    def expect_end(self) -> None:
        """Checks that nothing comes next."""
        if self.current is not None:
            raise self.unexpected("the end of the statement")

    def unexpected(self, what: str) -> KuzuError:
        """That something else comes next."""
        token = self.current
        if token is None:
            return parser_error(f"expected {what}, found the end of the statement")
        at = place(self.text, token.start)
        return parser_error(f"expected {what}, found '{token.text}' ({at})")
