r"""Designs that sample keys from ranges, in place of lists of values.

    [sample]
    method = "latin-hypercube"        # or "sobol"
    points = 200

    [sample.keys]
    "market.impact" = [0.1, 0.9]                   # evenly from this range
    "cohort.followers.count" = [10, 40]            # whole numbers: both ends are
    "cohort.followers.parameters.eta" = { low = 0.1, high = 100.0, log = true }

``latin-hypercube`` cuts every range into as many strata as there are points and gives each stratum
one point (McKay, Beckman and Conover, Technometrics 21, 1979). Its points have seeds of their own,
so that what differs from point to point is nature, too, as between data and a simulation.

``sobol`` is the design of Saltelli et al. (Computer Physics Communications 181, 2010): two blocks A
and B of a Sobol sequence in twice as many dimensions, and for each key the block A with that key's
column taken from B; n (d + 2) settings, all with the same seeds. What follows from either is in
``scenarios.studies.sampled``.
"""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator
from scipy.stats import qmc

from regretless.market.core.arrays import Array
from regretless.scenarios.config.tables import Count, Name, Strict
from regretless.scenarios.config.values import shown

FEWEST = 8  # points from which anything is estimated


class Span(Strict):
    """The range of a key."""

    low: float | int
    """Its lower end."""
    high: float | int
    """Its upper end."""
    log: bool = False
    """Whether its logarithm is sampled evenly."""

    @model_validator(mode="after")
    def _ordered(self) -> "Span":
        if not self.low < self.high:
            raise ValueError(f"from {self.low} to {self.high}: give the lower end first")
        if self.log and self.low <= 0:
            raise ValueError(f"from {self.low} with log = true: give a lower end above 0")
        return self

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers: both ends are."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends on the scale that is sampled; whole numbers reach half a unit beyond."""
        half = 0.5 if self.whole else 0.0
        low, high = self.low - half, self.high + half
        return (float(np.log(low)), float(np.log(high))) if self.log else (low, high)

    def values(self, share: Array) -> list[float | int]:
        """Return the values at shares of the range, from 0 to 1."""
        low, high = self.ends
        found = low + share * (high - low)
        found = np.exp(found) if self.log else found
        if not self.whole:
            return [float(value) for value in np.clip(found, self.low, self.high)]
        return [int(value) for value in np.clip(np.rint(found), self.low, self.high)]

    def shares(self, values: Array) -> Array:
        """Return which shares of the range values are, strictly between 0 and 1."""
        low, high = self.ends
        found = np.log(values) if self.log else np.asarray(values, dtype=np.float64)
        return np.asarray(np.clip((found - low) / (high - low), 1e-6, 1 - 1e-6))


class SampleSpec(Strict):
    """Keys that are sampled."""

    method: Literal["latin-hypercube", "sobol"] = "latin-hypercube"
    """How points are spread over the ranges."""
    points: Count
    """Points of the hypercube; for ``sobol`` those of one block, a power of 2."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the points."""
    keys: Annotated[dict[Name, Span], Field(min_length=1)]
    """Dotted keys with their ranges, [low, high] or a table."""
    targets: dict[Name, float] = Field(default_factory=dict)
    """Measures, as "COHORT.MEASURE", with what was observed: the keys are calibrated to them."""

    @field_validator("keys", mode="before")
    @classmethod
    def _pairs(cls, keys: Any) -> Any:
        if not isinstance(keys, dict):
            return keys
        return {key: cls._span(key, span) for key, span in keys.items()}

    @staticmethod
    def _span(key: str, span: Any) -> Any:
        if isinstance(span, dict):
            return span
        numbers = isinstance(span, list) and all(type(end) in {int, float} for end in span)
        if not numbers or len(span) != 2:
            raise ValueError(f"{key} = {shown(span)}: give [low, high], or low, high and log")
        return {"low": span[0], "high": span[1]}

    @model_validator(mode="after")
    def _enough(self) -> "SampleSpec":
        if self.points < FEWEST:
            raise ValueError(f"points = {self.points}: give at least {FEWEST}")
        if self.method == "sobol" and self.points & (self.points - 1):
            raise ValueError(f"points = {self.points}: give a power of 2 to method 'sobol'")
        if self.method == "sobol" and self.targets:
            raise ValueError("targets need method 'latin-hypercube'; change it")
        return self

    @property
    def own_seeds(self) -> bool:
        """Whether every point has seeds of its own."""
        return self.method == "latin-hypercube"

    def __len__(self) -> int:
        """Count the settings."""
        return self.points * (1 if self.own_seeds else len(self.keys) + 2)

    def settings(self) -> list[dict[str, Any]]:
        """Return the keys of every setting; of ``sobol`` A, then B, then A with one column of B."""
        shares, spans = self._shares(), self.keys.items()
        columns = [span.values(share) for (_, span), share in zip(spans, shares.T, strict=True)]
        return [dict(zip(self.keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def _shares(self) -> Array:
        """Return the settings (len, d) in the unit cube."""
        d = len(self.keys)
        if self.own_seeds:
            return np.asarray(qmc.LatinHypercube(d, rng=self.seed).random(self.points))
        both = qmc.Sobol(2 * d, rng=self.seed).random(self.points)
        first, second = both[:, :d], both[:, d:]
        mixed = np.repeat(first[None], d, axis=0)
        for key in range(d):
            mixed[key, :, key] = second[:, key]
        return np.concatenate([first, second, *mixed])
