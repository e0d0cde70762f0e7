"""What agents want: the economist's names, each a constructor of losses in [0, 1].

Importing the package registers the populations that scenario files draw from.
"""

from regretless.agents.utilities import order_menus, populations, sellers, trading
from regretless.agents.utilities.forms import (
    CARA,
    CES,
    CobbDouglas,
    Leontief,
    LinearUtility,
    LpTarget,
    MeanVariance,
    Newsvendor,
)

__all__ = [
    "CARA",
    "CES",
    "CobbDouglas",
    "Leontief",
    "LinearUtility",
    "LpTarget",
    "MeanVariance",
    "Newsvendor",
    "order_menus",
    "populations",
    "sellers",
    "trading",
]
