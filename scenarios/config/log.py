"""What a scenario file may say of its logs: windows of rounds over which regret is taken."""

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from regretless.market.logs.windows import Span
from regretless.scenarios.config.tables import Count, Strict

Start = Annotated[int, Field(ge=0)]


class WindowsSpec(Strict):
    """Windows of equal length, or from given rounds on (``market.logs.windows``)."""

    every: Count | None = None
    """Length of windows that follow one another from round 0."""
    starts: Annotated[list[Start], Field(min_length=1)] | None = None
    """First rounds of the windows, in place of every."""
    length: Count | None = None
    """Length of each, with starts; without it one lasts until the next starts."""

    @model_validator(mode="after")
    def _keys_fit(self) -> "WindowsSpec":
        if (self.every is None) == (self.starts is None):
            raise ValueError("give exactly one of every and starts")
        if self.length is not None and self.starts is None:
            raise ValueError("length goes with starts; drop it, or give starts instead of every")
        gaps = [after - before for before, after in pairwise(self.starts or ())]
        if gaps and min(gaps) < 1:
            raise ValueError(f"starts = {self.starts} do not ascend; sort them, each one once")
        if gaps and self.length is not None and self.length > min(gaps):
            raise ValueError(f"length = {self.length}: windows overlap; give at most {min(gaps)}")
        return self

    def spans(self, rounds: int) -> tuple[Span, ...]:
        """Return first and last round of every window of a run of so many rounds.

        The last window may be shorter than the others: it ends with the run. ValueError if one
        would start after it.
        """
        starts = list(range(0, rounds, self.every)) if self.every else list(self.starts or ())
        if starts[-1] >= rounds:
            raise ValueError(
                f"windows.starts: {starts[-1]} is not among {rounds} rounds, 0 to {rounds - 1}; "
                "start earlier or play more rounds"
            )
        ends = [*starts[1:], rounds]
        if self.length:
            ends = [min(start + self.length, rounds) for start in starts]
        return tuple((start, end - 1) for start, end in zip(starts, ends, strict=True))
