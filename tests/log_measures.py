"""The log of every agent of a model, and its mean loss and regrets by their definitions.

The measures take one log and one comparator at a time, so that a test can hold them against what
the ledger has added up during a run.
"""

from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel
from regretless.market.regret import definitions
from regretless.market.regret.ledger import MEASURES

BASIC_MEASURES = ("external", "swap", "decision_swap")
LogEntry = tuple[int, Array, Array]  # round, losses of all actions, strategy


def play_and_log(model: MarketModel) -> dict[int, list[LogEntry]]:
    """Play a model to its end, and return each agent's log, of the rounds in which it was there.

    Agents are numbered from 1 over all cohorts. An entry holds the round's index, the losses of the
    agent's actions (A,) and its strategy (A,).
    """
    log_of_agent: dict[int, list[LogEntry]] = {}
    while model.played < model.rounds:
        played_round = model.conclude(model.begin())
        agent = 0
        for cohort, decision, losses in zip(
            model.game.cohorts, played_round.decisions, played_round.losses, strict=True
        ):
            for number, row in enumerate(cohort.row_of):
                agent += 1
                if decision is None or decision.actions[number] < 0:  # absent
                    continue
                entry = (played_round.number, losses[row], decision.probabilities[row])
                log_of_agent.setdefault(agent, []).append(entry)
    return log_of_agent


def measure_log(measure: str, losses: Any, play: Any, policies: Any) -> float:
    """Return one regret of a log.

    Losses are (T, A), play is actions (T,) or probabilities (T, A). Policies are actions (C, T);
    only the regrets against policies use them.
    """
    needs_policies = measure in MEASURES[2:]
    comparators = [policies] if needs_policies else []
    regret = getattr(definitions, f"{measure}_regret")
    return float(regret(losses, play, *comparators))


def mean_loss_and_regrets(losses: Array, play: Array) -> list[float]:
    """Return mean loss, external, swap and decision swap regret of a log with constant policies.

    Losses are (T, A), play is actions (T,) or probabilities (T, A).
    """
    n_rounds, n_actions = losses.shape
    probabilities = np.eye(n_actions)[play] if play.ndim == 1 else play
    constant_policies = np.tile(np.arange(n_actions)[:, None], n_rounds)
    mean_loss = float((losses * probabilities).sum() / n_rounds)
    regrets = [
        measure_log(measure, losses, probabilities, constant_policies) for measure in BASIC_MEASURES
    ]
    return [mean_loss, *regrets]
