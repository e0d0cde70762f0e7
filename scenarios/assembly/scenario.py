"""What ``load`` returns: a scenario that is ready to be built with any seed.

The steps that build a market are in ``build``, what they read is a ``resolved`` scenario, and what
becomes of a market that is branched is in ``branches``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

# First: while Mesa is imported it looks several times through all loaded modules and the whole
# stack of calls, which are short here.
import regretless.market.model  # noqa: F401
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.branches import branch_model
from regretless.scenarios.assembly.build import BuildOptions, build_model
from regretless.scenarios.assembly.data import Table
from regretless.scenarios.assembly.impulse import impulse_frame
from regretless.scenarios.assembly.resolved import resolve
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.world import gives_own_losses
from regretless.scenarios.notes import annotate

MAX_DRY_RUN_AGENTS = 20  # of a cohort that a dry run draws: parameters are checked with any number


class Scenario:
    """A validated scenario, ready to be built with any seed.

    UserError if cohorts do not go together, or a data or game file cannot be used.

    Parameters
    ----------
    spec : ScenarioSpec
        What the file says; it is not changed.
    drawer : callable, optional
        Draws figures of its models (``market.model``), given the specification first.
    """

    def __init__(self, spec: ScenarioSpec, *, drawer: Callable[..., Any] | None = None) -> None:
        self.resolved = resolve(spec)
        self._drawer = drawer

    @property
    def spec(self) -> ScenarioSpec:
        """What the file says, with the sizes of its game filled in."""
        return self.resolved.spec

    @property
    def table(self) -> Table | None:
        """The data that are replayed; None without data."""
        return self.resolved.table

    def build(
        self,
        *,
        seed: int | None = None,
        log_every: int | None = None,
        apart: bool = False,
        spare: Mapping[str, int] | None = None,
    ) -> MarketModel:
        """Return a model that has played no round yet.

        UserError if a name is unknown or a parameter does not fit.

        Parameters
        ----------
        seed : int, optional
            Root seed; the scenario's own by default.
        log_every : int, optional
            Rounds between two entries of the regret log; by default every round has one, or the
            first round alone where ``logs = "summary"``.
        apart : bool
            Whether every agent has a row of its own, so that it can be taken out alone, where
            agents of equal losses would share one. In a market that gives each agent losses of its
            own they have one anyway.
        spare : dict, optional
            Agents of each cohort that ``model.add`` may let in later. They are
            drawn with the others, and each has a row of its own.
        """
        root_seed = self.spec.seed if seed is None else seed
        if not isinstance(root_seed, int | np.integer) or root_seed < 0:
            raise UserError(f"seed = {root_seed!r}: give a whole number of at least 0")
        options = BuildOptions(
            seed=root_seed,
            log_every=self._rounds_between_logs(log_every),
            apart=apart or gives_own_losses(self.spec.market) or self.spec.impulse is not None,
            spare=spare or {},
            drawer=self._drawer,
        )
        model = build_model(self.resolved, options)
        model.recipe = partial(branch_model, self.resolved, options)
        table = self.table
        if table is None:
            annotate(model, self.spec, rows=None, clipped_shares={})
        else:
            annotate(model, self.spec, rows=table.outcomes, clipped_shares=table.shares)
        return model

    def impulse_path(self, model: MarketModel) -> pd.DataFrame:
        """Return what everybody does around the scenario's impulse, with it and without it.

        ``model`` is built from this scenario, and has come to where the path begins: it has played
        its last round, or those up to ``before`` rounds before the impulse. It is not changed. The
        columns are those of the table ``impulse``. UserError if the scenario has no [impulse].
        """
        if self.spec.impulse is None:
            raise UserError("the scenario has no impulse; add a table [impulse]")
        return impulse_frame(model, self.spec.impulse)

    def _rounds_between_logs(self, log_every: int | None) -> int:
        """Return the rounds between two entries of the regret log, by default what suits it."""
        if log_every is not None:
            return log_every
        return self.spec.rounds if self.spec.logs == "summary" else 1


def sampled(spec: ScenarioSpec) -> ScenarioSpec:
    """Return a scenario with few agents of each cohort that names none singly.

    They are ``MAX_DRY_RUN_AGENTS`` at most.
    """
    if spec.network is not None:
        return spec
    cohorts = []
    for cohort in spec.cohort:
        values = [*cohort.parameters.values(), *cohort.reports.values(), *cohort.settings.values()]
        lists = [value for value in values if isinstance(value, list)]
        names_each_agent = any(len(given) == cohort.count for given in lists)
        is_kept = cohort.multiplicity or cohort.cover is not None or names_each_agent
        if cohort.count <= MAX_DRY_RUN_AGENTS or is_kept:
            cohorts.append(cohort)
            continue
        types = cohort.types and min(cohort.types, MAX_DRY_RUN_AGENTS)
        sample_sizes = {"count": MAX_DRY_RUN_AGENTS, "types": types}
        cohorts.append(cohort.model_copy(update=sample_sizes))
    return spec.model_copy(update={"cohort": cohorts})
