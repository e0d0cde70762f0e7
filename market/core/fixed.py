"""What playing never changes: the copies of players that play on share it.

An adversary that looks ahead plays whole games with copies of the players
(``market.game.lookahead``). Large tables that are made once and only read afterwards are of a class
that inherits from ``Fixed``, and are not copied.
"""


class Fixed:
    """A thing that nothing writes to after it is made."""

    @property
    def is_fixed(self) -> bool:
        """Whether it may be shared; False where it holds something that may change."""
        return True
