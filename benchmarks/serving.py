"""Serving forecasts: a round of one series and of many shops, and a quantile.

    one series     predict, act and learn, beside an autoregression in NumPy that is fitted again
                   every round, with the quantiles of its residuals
    quantile       of a forecast, beside NumPy's weighted quantile
    20 shops       a round in arrays, beside an omnipredictor of its own for each of them
    1,000 shops    a round in arrays, beside as many autoregressions in arrays, by orders and losses

The rivals of the first and the last do less: nothing protects their users from regret. Answers are
compared where both ways have the same one.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np

from benchmarks.duels import Array, Duel
from regretless import ManyOmnipredictors, OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.market.core.randomness import stream

HIGHEST = 160.0  # demand
N_ORDERS = 21
MANY_ORDERS = 41
N_LAGS = 12
WARM_UP_ROUNDS = 100
FEW_SHOPS = 20
MANY_SHOPS = 1000
QUICK_WARM_UP_ROUNDS = 5
QUICK_SHOPS = 3  # of a quick run, in place of few and of many
NO_ANSWER = np.zeros(1)  # of works whose two ways have no common answer


class Shops:
    """Newsvendors with costs of their own, and their demand, higher on weekends."""

    def __init__(
        self, n_shops: int, *, warm_up: int, n_orders: int = N_ORDERS, n_losses: int = 1
    ) -> None:
        rng = stream(0, "bench", "serving", str(n_shops))
        self.n_shops = n_shops
        self.warm_up = warm_up  # rounds before the clock starts
        self.losses = {}
        self.levels = []  # critical ratios (S,) of every loss
        orders = np.linspace(0.0, HIGHEST, n_orders)
        for number in range(n_losses):
            underage = rng.uniform(1.0, 9.0, n_shops)
            overage = rng.uniform(1.0, 3.0, n_shops)
            name = "store" if number == 0 else f"store {number + 1}"
            self.losses[name] = Newsvendor(orders, underage, overage)
            self.levels.append(underage / (underage + overage))
        self.scale = {"demand": (0.0, HIGHEST)}

    def days(self) -> Iterator[tuple[dict[str, float], Array]]:
        """Yield each day's context and the demand of all shops (S,)."""
        rng = stream(1, "bench", "serving", str(self.n_shops))
        for day in count():
            demand = 70.0 + 30.0 * (day % 7 >= 5) + rng.normal(0.0, 8.0, self.n_shops)
            yield {"weekday": float(day % 7)}, demand

    def in_arrays(self) -> Callable[[], Array]:
        """Return a function that plays a day of all shops, after a warm-up, and their orders."""
        shops = ManyOmnipredictors(self.losses, scale=self.scale)
        days = self.days()

        def play_day() -> Array:
            x, demand = next(days)
            orders = [shops.act_many(name, x) for name in self.losses]
            shops.learn_many(x, demand)
            return np.concatenate(orders)

        return self._warmed_up(play_day)

    def one_by_one(self) -> Callable[[], Array]:
        """Return the same with an omnipredictor for each shop."""
        servers = []
        for shop in range(self.n_shops):
            losses = {name: loss[shop] for name, loss in self.losses.items()}
            servers.append(OnlineOmnipredictor(losses, scale=self.scale))
        days = self.days()

        def play_day() -> Array:
            x, demand = next(days)
            orders = []
            for name in self.losses:
                orders += [server.predict_one(x).act(name) for server in servers]
            for server, outcome in zip(servers, demand.tolist(), strict=True):
                server.learn_one(x, outcome)
            return np.array(orders)

        return self._warmed_up(play_day)

    def by_autoregressions(self) -> Callable[[], Array]:
        """Return the same with autoregressions, fitted to all days so far by least squares."""
        days = self.days()
        past: list[Array] = [next(days)[1] for _ in range(2 * N_LAGS)]

        def play_day() -> Array:
            _x, demand = next(days)
            outcomes = np.array(past).T  # (S, T)
            windows = np.lib.stride_tricks.sliding_window_view(outcomes, N_LAGS, axis=1)
            features = np.concatenate([windows, np.ones((*windows.shape[:2], 1))], axis=2)
            known = features[:, :-1]
            targets = outcomes[:, N_LAGS:, np.newaxis]
            transposed = known.swapaxes(1, 2)
            gram = transposed @ known + 1e-6 * np.eye(N_LAGS + 1)
            coefficients = np.linalg.solve(gram, transposed @ targets)
            residuals = np.sort((targets - known @ coefficients)[:, :, 0], axis=1)
            forecasts = (features[:, -1:] @ coefficients)[:, 0, 0]
            orders = []
            for levels in self.levels:
                places = (levels * residuals.shape[1]).astype(int)
                orders.append(forecasts + residuals[np.arange(len(places)), places])
            past.append(demand)
            return np.concatenate(orders)

        return self._warmed_up(play_day)

    def _warmed_up(self, play_day: Callable[[], Array]) -> Callable[[], Array]:
        """Play the days of the warm-up, and return the function."""
        for _ in range(self.warm_up):
            play_day()
        return play_day


def without_answer(way: Callable[[], Array]) -> Array:
    """Do the work, whose answer is not that of the other way."""
    way()
    return NO_ANSWER


def one_series_numpy(warm_up: int) -> Duel:
    """Compare a day of one series with an autoregression's."""
    shop = Shops(1, warm_up=warm_up)
    return Duel(
        "serving",
        f"predict, act, learn; one series, {N_ORDERS} orders",
        "numpy",
        ours=partial(without_answer, shop.one_by_one()),
        theirs=partial(without_answer, shop.by_autoregressions()),
    )


def quantile_numpy(warm_up: int) -> Duel:
    """Compare a quantile with NumPy's of the same distribution."""
    shop = Shops(1, warm_up=warm_up)
    server = OnlineOmnipredictor({"store": shop.losses["store"][0]}, scale=shop.scale)
    days = shop.days()
    for _ in range(warm_up):
        x, demand = next(days)
        server.learn_one(x, float(demand[0]))
    forecast = server.predict_one({"weekday": 0.0})
    outcomes = forecast.outcomes[:, 0]
    weights = forecast.weights

    def ours() -> Array:
        new_forecast = replace(forecast)  # which has sorted nothing yet
        return np.array([new_forecast.quantile(0.9)])

    def theirs() -> Array:
        quantile = np.quantile(outcomes, 0.9, weights=weights, method="inverted_cdf")
        return np.array([quantile])

    return Duel("serving", f"quantile of {len(weights):,} outcomes", "numpy", ours, theirs)


def shops_one_by_one(n_shops: int, warm_up: int) -> Duel:
    """Compare a day of a few shops in arrays with omnipredictors of their own."""
    shops = Shops(n_shops, warm_up=warm_up)
    return Duel(
        "serving",
        f"a round of {n_shops} shops, {N_ORDERS} orders",
        "python",
        ours=shops.in_arrays(),
        theirs=shops.one_by_one(),
    )


def shops_numpy(n_shops: int, warm_up: int, *, n_orders: int = N_ORDERS, n_losses: int = 1) -> Duel:
    """Compare a day of many shops in arrays with autoregressions in arrays."""
    shops = Shops(n_shops, warm_up=warm_up, n_orders=n_orders, n_losses=n_losses)
    of_losses = "" if n_losses == 1 else f"{n_losses} losses of "
    return Duel(
        "serving",
        f"a round of {n_shops:,} shops, {of_losses}{n_orders} orders",
        "numpy",
        ours=partial(without_answer, shops.in_arrays()),
        theirs=partial(without_answer, shops.by_autoregressions()),
    )


def works(*, quick: bool) -> tuple[Callable[[], Duel], ...]:
    """List all works; ``quick`` makes shops and rounds few."""
    warm_up = QUICK_WARM_UP_ROUNDS if quick else WARM_UP_ROUNDS
    n_shops = QUICK_SHOPS if quick else MANY_SHOPS
    return (
        partial(one_series_numpy, warm_up),
        partial(quantile_numpy, warm_up),
        partial(shops_one_by_one, QUICK_SHOPS if quick else FEW_SHOPS, warm_up),
        partial(shops_numpy, n_shops, warm_up),
        partial(shops_numpy, n_shops, warm_up, n_orders=MANY_ORDERS),
        partial(shops_numpy, n_shops, warm_up, n_losses=2),
        partial(shops_numpy, n_shops, warm_up, n_losses=3),
    )
