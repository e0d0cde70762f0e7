"""What a page is told of a session: the state of its controls, a sentence, figures and an agent."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import plotly.graph_objects as go
from plotly.io import to_json

from regretless.scenarios.config.scenario import resolved
from regretless.scenarios.live import players
from regretless.scenarios.live.session import TURN, Session
from regretless.scenarios.report import theme
from regretless.scenarios.report.run_data import Run, described
from regretless.scenarios.report.run_figures import path
from regretless.scenarios.report.run_page import figures_of, origin
from regretless.scenarios.verdict import sentences

MARKED = {"regret", "loss", "actions", "owned", "measures"}  # rounds below, replacements marked
LEAST = 5e-5  # a smaller contribution would be printed as zero
PATH = (
    "Its average loss so far, and what that would be if, in hindsight, every action had been "
    "replaced by the best for it: the gap is its regret."
)


def answer(session: Session, wanted: Sequence[str], agent: int | None, builds: int) -> str:
    """Return the state of a session as JSON, with the figures that are wanted.

    ``agent`` is of whom the page wants to know more, ``builds`` the build whose controls it has.
    """
    with session.lock:
        state = _state(session, builds)
        config, replaced = resolved(session.scenario.spec), list(session.replaced)
        tables: dict[str, Any] = {}
        if session.model.played:
            with TURN:
                tables = session.watched.tables()
            state["verdict"] = verdict(session, tables)
        if tables and agent is not None and 0 < agent <= len(tables["agents"]):
            state["agent"] = _agent(session, tables, agent)
    if tables:
        figures = figures_of(Run(config, tables, session.model.called), wanted, undated=MARKED)
        for name, one in figures.items():
            for at, _ in replaced if name in MARKED else ():  # where a player was replaced
                one.made.add_vline(at, line={"color": theme.FAINT, "width": 1, "dash": "dot"})
        state["figures"] = {name: _json(one.made) for name, one in figures.items()}
    return json.dumps(state)


def _state(session: Session, builds: int) -> dict[str, Any]:
    """Return what the controls show; what only a build changes if that is new to the page."""
    model, spec = session.model, session.scenario.spec
    state: dict[str, Any] = {
        "clock": time.monotonic(),
        "version": session.version,
        "builds": session.builds,
        "played": model.played,
        "rounds": model.rounds,
        "playing": session.playing,
        "speed": session.speed,
        "fault": session.fault,
        "replaced": [f"before round {at}, {what}" for at, what in session.replaced],
        "named": session.named,
        "promises": list(session.promises()),
        "verdict": "Nothing has been played yet.",
        "saving": session.saving.summary(),
    }
    if builds != session.builds:
        state["build"] = {
            "scenario": session.source.name,
            "name": spec.name,
            "description": spec.description,
            "seed": spec.seed,
            "keys": [asdict(key) for key in session.keys],
            "agents": sum(len(cohort.row_of) for cohort in model.game.cohorts),
            "forecasters": players.forecasters(session.scenario),
            "adversaries": session.rivals,
        }
    return state


def verdict(session: Session, tables: dict[str, Any]) -> str:
    """Say in a paragraph per cohort how the agents fare so far."""
    after = f"After {session.model.played:,} round{'s' * (session.model.played != 1)}: "
    return after + "\n".join(sentences(tables["verdict"], tables["agents"]))


def _json(figure: go.Figure) -> Any:
    return json.loads(to_json(figure, engine="json"))


def _agent(session: Session, tables: dict[str, Any], number: int) -> dict[str, Any]:
    """Return what is known of an agent: in lines, its swaps, and its path as a figure."""
    row = tables["agents"].iloc[number - 1]
    swaps = session.model.swaps_frame()
    own = swaps[swaps["agent"] == number] if len(swaps) else swaps
    figure = path(session.watched.path(number))
    return {
        "number": number,
        "lines": [f"cohort {row['cohort']}", *described(row.to_dict()).split("<br>")],
        "swaps": [_swap(swap) for swap in own.to_dict("records")],
        "figure": None if figure is None else _json(figure),
        "caption": PATH,
    }


def _swap(swap: dict[Any, Any]) -> list[str]:
    """Write the action, how often it was played, what would have been better, and by how much."""
    played, count, better, policy, gain = origin(swap)
    if swap["contribution"] < LEAST:
        return [played, count, "none", ""]
    return [played, count, policy or better, gain]
