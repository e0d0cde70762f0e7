"""Gambit's strategic-form files (.nfg): payoffs form and outcomes form.

``NormalForm.read`` calls ``parse``. The format is that of Gambit's documentation
(McKelvey, McLennan and Turocy, *Gambit: software tools for game theory*):

    NFG 1 R "title" { "player 1" "player 2" }
    { { "up" "down" } { "left" "right" } }      or { 2 2 }, the numbers of strategies
    "comment"                                    may be left out
    1 1 0 2 ...                                  payoffs form: of all players, profile by profile
    { { "name" 1, 1 } { "" 1/2, 3 } } 1 2 2 0    outcomes form: outcomes, then one per profile

The first player's strategy changes fastest from profile to profile. Numbers are integers, decimals
or fractions. Outcome 0 pays everybody nothing.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError

MAX_STRATEGIES = 1_000_000  # of a player
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([{}])|([^\s{},"]+)|,|(\s+)')


@dataclass(frozen=True, eq=False)
class ParsedGame:
    """What a file says; payoffs are (A_1, ..., A_N, N)."""

    title: str
    players: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    payoffs: Array


@dataclass(frozen=True)
class Token:
    """A piece of the file: a text in quotes, a brace, or a word."""

    kind: str  # "text", "brace" or "word"
    value: str
    line: int

    def is_brace(self, brace: str) -> bool:
        """Whether it is this brace."""
        return self.kind == "brace" and self.value == brace


class TokenReader:
    """Reads tokens one after another; UserError names the line of what is not expected."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing left."""
        return self._position >= len(self._tokens)

    @property
    def next_token(self) -> Token:
        """The next token, which stays; UserError at the end of the file."""
        if self.is_at_end:
            raise UserError("the file ends too early; complete it")
        return self._tokens[self._position]

    def take(self, kind: str, value: str | None = None) -> str:
        """Return the value of the next token and pass it; UserError unless it is as expected."""
        token = self.next_token
        if token.kind != kind or (value is not None and token.value != value):
            expected = f"'{value}'" if value is not None else f"a {kind}"
            raise UserError(f"line {token.line}: '{token.value}' where {expected} is expected")
        self._position += 1
        return token.value

    def take_number(self) -> float:
        """Return the number that is next: an integer, a decimal or a fraction."""
        token = self.next_token
        text = self.take("word")
        try:
            return float(Fraction(text))
        except (ValueError, ZeroDivisionError) as error:
            raise UserError(f"line {token.line}: '{text}' is no number; mend it") from error
        except OverflowError as error:
            raise UserError(f"line {token.line}: '{text}' is too large; scale it") from error

    def take_texts(self) -> tuple[str, ...]:
        """Return the texts in a pair of braces."""
        self.take("brace", "{")
        texts = []
        while not self.next_token.is_brace("}"):
            texts.append(self.take("text"))
        self.take("brace", "}")
        return tuple(texts)


def _tokens(text: str) -> list[Token]:
    tokens = []
    position = 0
    line = 1
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise UserError(f"line {line}: a quotation mark is not closed; close it")
        quoted, brace, word, _ = match.groups()
        if quoted is not None:
            tokens.append(Token("text", quoted.replace('\\"', '"'), line))
        elif brace is not None:
            tokens.append(Token("brace", brace, line))
        elif word is not None:
            tokens.append(Token("word", word, line))
        line += match.group().count("\n")
        position = match.end()
    return tokens


def parse(text: str) -> ParsedGame:
    """Read the text of a file; UserError names the line of what is wrong."""
    reader = TokenReader(text)
    if reader.is_at_end or reader.next_token.value != "NFG":
        raise UserError("it does not begin with NFG 1 R; give a strategic-form file of Gambit")
    reader.take("word", "NFG")
    reader.take("word", "1")
    if reader.take("word") not in {"R", "D"}:
        raise UserError('the header must be NFG 1 R "title"; mend it')
    title = reader.take("text")
    players = reader.take_texts()
    if not players:
        raise UserError("the game has no players; name at least one")
    actions = _read_actions(reader, len(players))
    sizes = tuple(len(names) for names in actions)
    if not reader.is_at_end and reader.next_token.kind == "text":
        reader.take("text")  # a comment
    if not reader.is_at_end and reader.next_token.is_brace("{"):
        by_profile = _read_outcomes(reader, sizes)
    else:
        n_numbers = prod(sizes) * len(players)
        numbers = [reader.take_number() for _ in range(n_numbers)]
        by_profile = np.array(numbers).reshape(-1, len(players))
    if not reader.is_at_end:
        token = reader.next_token
        raise UserError(f"line {token.line}: '{token.value}' after the last profile; drop it")
    payoffs = by_profile.reshape(*sizes, len(players), order="F")
    return ParsedGame(title=title, players=players, actions=actions, payoffs=payoffs)


def _read_actions(reader: TokenReader, n_players: int) -> tuple[tuple[str, ...], ...]:
    """Read the strategies of each player: their names, or how many there are."""
    reader.take("brace", "{")
    actions = []
    for _ in range(n_players):
        if reader.next_token.is_brace("{"):
            actions.append(reader.take_texts())
        else:
            token = reader.next_token
            size = reader.take_number()
            if not (size.is_integer() and 1 <= size <= MAX_STRATEGIES):
                expected = f"give a number from 1 to {MAX_STRATEGIES:,}"
                raise UserError(f"line {token.line}: {token.value} strategies; {expected}")
            actions.append(tuple(str(number) for number in range(1, int(size) + 1)))
    reader.take("brace", "}")
    if not all(actions):
        raise UserError("a player has no strategies; name at least one")
    return tuple(actions)


def _read_outcomes(reader: TokenReader, sizes: tuple[int, ...]) -> Array:
    """Read outcomes and which of them every profile has; return payoffs (profiles, N)."""
    n_players = len(sizes)
    outcomes = [[0.0] * n_players]  # outcome 0
    reader.take("brace", "{")
    while not reader.next_token.is_brace("}"):
        reader.take("brace", "{")
        reader.take("text")
        outcomes.append([reader.take_number() for _ in range(n_players)])
        reader.take("brace", "}")
    reader.take("brace", "}")
    payoffs = []
    for _ in range(prod(sizes)):
        token = reader.next_token
        number = reader.take_number()
        if not (number.is_integer() and 0 <= number < len(outcomes)):
            raise UserError(
                f"line {token.line}: there is no outcome {token.value}; "
                f"give 0 to {len(outcomes) - 1}"
            )
        payoffs.append(outcomes[int(number)])
    return np.array(payoffs)
