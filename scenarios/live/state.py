"""What a live page is told of its session: the state of its controls, figures, and one agent.

``describe_session`` returns all of it as JSON. The page's scripts (``live/page``) put each part in
its place.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
from plotly.io import to_json

from regretless.scenarios.config.validation import resolved
from regretless.scenarios.live.session import PLAYING_LOCK, Session
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import Figure, Run, describe_agent, draw_figures
from regretless.scenarios.report.run_figures import draw_path
from regretless.scenarios.report.run_page import SMALLEST_SHOWN, swap_cells
from regretless.scenarios.verdict import records, sentences

FIGURES_OVER_ROUNDS = {"regret", "loss", "actions", "owned", "measures"}  # of the whole course
PATH_CAPTION = (
    "Its average loss so far, and what that would be if, in hindsight, every action had been "
    "replaced by the best for it: the gap is its regret."
)


def describe_session(
    session: Session, figure_names: Sequence[str], *, agent: int | None, builds: int
) -> str:
    """Return the state of a session as JSON, with the figures of these names.

    Parameters
    ----------
    agent : int or None
        Of whom the page wants to know more, counted from 1; nothing is said of one who is not
        there.
    builds : int
        The number of the build whose controls the page has.
    """
    with session.lock:
        state = _state_of_controls(session, builds)
        n_played = session.model.played
        if n_played == 0:
            state["verdict"] = "Nothing has been played yet."
            return json.dumps(state)
        with PLAYING_LOCK:
            tables = session.recorder.tables()
        replacements = list(session.replacements)
        paragraphs = "\n".join(sentences(tables["verdict"], tables["agents"]))
        plural = "s" if n_played > 1 else ""
        state["verdict"] = f"After {n_played:,} round{plural}: {paragraphs}"
        if agent is not None and 0 < agent <= len(tables["agents"]):
            state["agent"] = _describe_agent(session, tables["agents"], agent)
        run = Run(resolved(session.scenario.spec), tables, session.model.called)
    figures = draw_figures("run", run, figure_names, undated=FIGURES_OVER_ROUNDS)
    for name in FIGURES_OVER_ROUNDS & figures.keys():
        _mark_replacements(figures[name], [round_index for round_index, _ in replacements])
    state["figures"] = {name: json.loads(figure.json) for name, figure in figures.items()}
    return json.dumps(state)


def _state_of_controls(session: Session, builds: int) -> dict[str, Any]:
    """Return what the controls show; what only a build changes if that build is new to the page."""
    replacements = []
    for round_index, replacement in session.replacements:
        replacements.append(f"before round {round_index}, {replacement}")
    state: dict[str, Any] = {
        "clock": time.monotonic(),
        "version": session.version,
        "builds": session.n_builds,
        "playing": session.playing,
        "speed": session.speed,
        "fault": session.fault,
        "players": session.players,
        "played": session.model.played,
        "rounds": session.model.rounds,
        "end": session.describe_end(),
        "replacements": replacements,
        "promises": list(session.promises()),
        "saving": session.saving.summary(),
    }
    if builds != session.n_builds:
        state["build"] = _describe_build(session)
    return state


def _describe_build(session: Session) -> dict[str, Any]:
    """Return what a page needs to know of a market that was built anew."""
    spec = session.scenario.spec
    return {
        "scenario": session.source.name,
        "name": spec.name,
        "description": spec.description,
        "seed": spec.seed,
        "keys": [asdict(key) for key in session.keys],
        "agents": sum(len(cohort.row_of) for cohort in session.model.game.cohorts),
        "forecasters": session.forecasters,
        "adversaries": session.adversaries,
    }


def _describe_agent(session: Session, agents: pd.DataFrame, number: int) -> dict[str, Any]:
    """Return what is known of an agent: facts in lines, its swaps, and its path as a figure."""
    agent_row = agents.iloc[number - 1]
    swaps = session.model.swaps_frame()
    if len(swaps):
        swaps = swaps[swaps["agent"] == number]
    swap_rows = []
    for swap in records(swaps):
        played, replacement, policy, count, gain = swap_cells(swap)
        if swap["contribution"] < SMALLEST_SHOWN:
            swap_rows.append([played, count, "none", ""])
        else:
            swap_rows.append([played, count, policy or replacement, gain])
    facts = describe_agent(agent_row.to_dict()).split("<br>")
    figure = draw_path(session.recorder.path(number))
    return {
        "number": number,
        "lines": [f"cohort {agent_row['cohort']}", *facts],
        "swaps": swap_rows,
        "figure": None if figure is None else json.loads(to_json(figure, engine="json")),
        "caption": PATH_CAPTION,
    }


def _mark_replacements(figure: Figure, round_indices: Sequence[int]) -> None:
    """Draw a dotted line before each round in which a player was replaced."""
    for round_index in round_indices:
        figure.chart.add_vline(round_index, line={"color": theme.FAINT, "width": 1, "dash": "dot"})
