"""Figures of a run, each drawn from the tables of its run directory.

    loss              per cohort: mean loss so far beside what the best alternatives would have cost
    regret            per cohort: mean over the agents, worst agent and bound, round by round
    bounds            per cohort: worst agent's regret beside its bounds, as the run went on
    windows           per cohort: mean and worst regret of every window of rounds, taken alone
    spread            per cohort: regret of every agent at the end
    agents            a dot per agent: mean loss against regret
    exploitability    per cohort: what the worst leader could have gained from each agent
    forecast          per outcome: rolling means of the drawn label forecast and the truth
    certificates      what the forecaster's solver left open, added up, and its tolerance

A function returns None where the tables lack what it would show. Exploitability forgives some swap
regret (``market.exploitability.tracker.TOLERANCE``) and lies in [0, 1], in units of a leader's
payoff.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.forecaster.tolerance import slack_limit
from regretless.market.core.randomness import stream
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.logs.welfare import COUNT, means_of, with_counts
from regretless.scenarios.logs.curves import leading_regret, thinned
from regretless.scenarios.report import charts
from regretless.scenarios.verdict import best_of_each

Tables = Mapping[str, pd.DataFrame]

WINDOW = 30  # rounds of a rolling mean, fewer in a short run
MOST = 4000  # agents that are drawn; beyond, a seeded sample with the worst in it
BINS = 30
PAIR = {"mean": 1.25, "max": 0.5}  # over the agents, with the shares of their lines' widths
BOUNDS: dict[str, tuple[str, dict[str, Any]]] = {
    "decision_swap_regret": ("worst regret", {"width": 2.5}),
    "bound_from_bias": ("bound from bias", {"width": 1.5, "dash": "dot"}),
    "bound_from_variation": ("bound from variation", {"width": 1.5, "dash": "dashdot"}),
    "bound": ("bound", {"width": 1.5, "dash": "dash"}),
}
OTHERS = {
    "model": ("best model", "dash"),
    "policy": ("best policy", "dashdot"),
    "action": ("best fixed action", "dot"),
}
CAPTIONS = {
    "loss": (
        "Loss over time, a panel per cohort: its mean loss so far (thick), and what the best "
        "alternatives of each kind, best over the whole run, cost on average over all of it. The "
        "first tenth of the rounds, in which means jump, is left out. A "
        "thick line that ends below the others lost less than they would have."
    ),
    "regret": (
        "Regret per round so far, mean (thick) and worst agent (thin) of each cohort: lines that "
        "sink towards zero mean that no agent knows a better rule in hindsight. Where a theorem "
        "applies its bound after the last round is dashed; those far above wait in the legend, "
        "where a click shows them. Zero stands on the edge of a logarithmic axis."
    ),
    "bounds": (
        "Regret beside its bounds, worst agent, both axes logarithmic: what was measured (thick), "
        "what follows from the measured biases, from their variation, and from the theorem alone. "
        "They hold in all rounds at once; a bound of 1 or more says nothing."
    ),
    "windows": (
        "Regret per window of rounds, each taken alone, mean (thick) and worst agent (thin) of "
        "each cohort: a step that rises after a change of regime is what agents regret of those "
        "rounds, whatever they did well before."
    ),
    "spread": (
        "Agents by their regret per round at the end, a row per cohort: bars on the left are "
        "agents who would have gained nothing by swapping, and the rightmost bar holds the worst."
    ),
    "agents": (
        "Every agent at the end, mean loss against regret: a dot far above the others is an agent "
        "who would have gained from another rule; one far to the right did badly, whether or not "
        "it could have helped it."
    ),
    "exploitability": (
        "Exploitability, a row per cohort: how far each agent's play is from play that no leader "
        "could have gained from, whatever the leader's payoffs in [0, 1] and commitment; swap "
        f"regret up to {TOLERANCE} is forgiven, and an agent within that stands at 0."
    ),
    "forecast": (
        "What came, and the outcome that the drawn forecast stood for, as rolling means: the lines "
        "should move together, while a steady gap is no error where losses are curved, because "
        "there the forecast is to be right on average about the losses, not about the outcome."
    ),
    "certificates": (
        "What the forecaster's solver left open per round, added up where it is positive: below "
        "the dashed line it kept to its tolerance."
    ),
}


def loss(tables: Tables) -> go.Figure | None:
    """Draw mean loss so far, a panel per cohort, and the mean loss of the best alternatives."""
    curves, verdict = tables.get("regret_curves"), tables.get("verdict")
    if curves is None or verdict is None or curves.index.unique("round").size < 2:
        return None
    names, shades = verdict["cohort"].unique(), cohort_colours(tables["agents"])
    figure, shown = charts.panels(list(map(charts.heading, names)), rows=len(names)), set[str]()
    for row, name in enumerate(names, 1):
        curve = curves.loc[name, "loss"].expanding().mean()
        rounds = curve.index.to_numpy()
        points = thinned(rounds[rounds >= charts.EARLY * rounds[-1]])
        drawn = [charts.line(points, curve[points], "so far", color=shades[name], width=3)]
        drawn += _alternatives(verdict[verdict["cohort"] == name], points[[0, -1]])
        for one in drawn:
            one.update(legendgroup=one.name, showlegend=one.name not in shown)
            shown.add(one.name)
        figure.add_traces(drawn, rows=row, cols=1)
        charts.hold(figure, row, *drawn)
    charts.name_at_ends(figure, 150)
    figure.update_yaxes(title_text="mean loss")
    return figure.update_xaxes(title_text="round", row=len(names))


def _alternatives(rows: pd.DataFrame, ends: Any) -> Iterator[go.Scatter]:
    """Yield a level line for the best alternative of each kind."""
    for _, best in best_of_each(rows).iterrows():
        if best["kind"] in OTHERS:
            word, dash = OTHERS[best["kind"]]
            level = charts.line(ends, [best["mean_loss"]] * 2, word, color=charts.INK, dash=dash)
            told = charts.short(best["name"]) if best["kind"] != "action" else word
            yield level.update(hovertemplate=f"{told}: %{{y:.4f}}", line_width=1.5)


def regret(tables: Tables) -> go.Figure | None:
    """Draw mean, worst agent and bound of each cohort."""
    agents, curves = tables["agents"], tables.get("regret_curves")
    if curves is None or len(curves) < 2 or curves.index.unique("round").size < 2:
        return None
    rounds = curves.index.unique("round").to_numpy()
    curves = curves[curves.index.isin(thinned(rounds), level="round")].dropna()
    if curves.empty:
        return None
    logarithmic = charts.spans_decades(curves["mean"])
    figure = charts.panels(each=360).add_traces(list(map(charts.lifted, _regrets(curves, agents))))
    figure.update_xaxes(title_text="round").update_yaxes(
        title_text=f"{_measured(curves)} per round", rangemode="tozero"
    )
    charts.choose_scale(figure, logarithmic=logarithmic)
    return figure


def _regrets(curves: pd.DataFrame, agents: pd.DataFrame) -> Iterator[go.Scatter]:
    shades, names = cohort_colours(agents), curves.index.unique("cohort")
    for place, name in enumerate(names):
        curve = curves.loc[name]
        for column, share in PAIR.items():
            width = share * charts.nested(place, len(names))
            pair = charts.line(
                curve.index, curve[column], charts.short(name), color=shades[name], width=width
            )
            yield pair.update(legendgroup=str(name), showlegend=column == "mean")
    bounds = agents.groupby("cohort", sort=False)["bound"].max().reindex(names)
    ends = curves.index.unique("round")[[0, -1]]
    yield from charts.limits(
        "bound after the last round", bounds, shades, curves["max"].max(), ends
    )


def bounds(tables: Tables) -> go.Figure | None:
    """Draw worst regret and its bounds, a panel per cohort; None where no theorem applies."""
    kept = tables.get("bounds", pd.DataFrame(columns=["round", "decision_swap_regret"]))
    kept = kept[kept["decision_swap_regret"].notna()]
    if kept["round"].nunique() < 2:
        return None
    groups = kept.groupby("cohort", sort=False)
    figure = charts.panels([charts.heading(name) for name, _ in groups], rows=len(groups), each=240)
    shades = cohort_colours(tables["agents"])
    figure.update_yaxes(charts.SCALES["logarithmic"] | {"title_text": "per round"})
    for row, (name, own) in enumerate(groups, 1):
        drawn = []
        for column, (word, style) in BOUNDS.items():
            if own[column].notna().any():
                curve = own[own[column].notna()]
                drawn.append(charts.line(curve["round"], curve[column], word, color=shades[name]))
                drawn[-1].line.update(style)
        lifted = [charts.lifted(one) for one in drawn]
        for one in lifted:
            one.update(legendgroup=one.name, showlegend=row == 1)
        figure.add_traces(lifted, rows=row, cols=1)
        charts.hold(figure, row, *lifted)
    charts.name_at_ends(figure, 240)
    return figure.update_xaxes(type="log").update_xaxes(title_text="round", row=len(groups))


def _measured(curves: pd.DataFrame) -> str:
    """Name the regret that curves show."""
    if (curves["kept"] == curves["count"]).all():
        return "decision swap regret"
    return "decision swap or swap regret" if curves["kept"].any() else "swap regret"


def cohort_colours(agents: pd.DataFrame) -> dict[Any, str]:
    """Give each cohort of an ``agents`` table its colour, the same in all figures."""
    return charts.colours(agents["cohort"].unique())


def windows(tables: Tables) -> go.Figure | None:
    """Draw each cohort's regret window by window; None where no window has ended."""
    kept, agents = tables.get("windows"), tables["agents"]
    steps = pd.DataFrame() if kept is None or kept.empty else _steps(kept, agents)
    if steps.empty:
        return None
    figure, shades = charts.panels(each=300), cohort_colours(agents)
    names = steps.index.unique("cohort")
    for place, name in enumerate(names):
        own = steps.loc[name].reset_index()
        own = own.iloc[thinned(own.index.to_numpy())]
        spans = np.stack([own["first"], own["last"] + 1, own["last"] + 1], axis=1).ravel()
        for column, share in PAIR.items():
            width = share * charts.nested(place, len(names))
            levels = np.repeat(own[column].to_numpy(), 3)
            levels[2::3] = np.nan  # which parts a step from the next
            pair = charts.line(spans, levels, charts.short(name), color=shades[name], width=width)
            figure.add_trace(pair.update(legendgroup=str(name), showlegend=column == "mean"))
    charts.zero(figure)
    return figure.update_xaxes(title_text="round").update_yaxes(
        title_text="regret per round of the window"
    )


def _steps(kept: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Return mean and worst regret, indexed by cohort, first and last round of the window."""
    cohort = kept["agent"].map(agents.set_index("agent")["cohort"])
    rows = with_counts(kept.assign(cohort=cohort, mean=leading_regret(kept)), agents)
    keys = ["cohort", "first", "last"]
    worst = rows.groupby(keys, sort=False)["mean"].max()
    return means_of(rows, keys, ["mean"]).assign(max=worst).dropna()


def spread(tables: Tables) -> go.Figure | None:
    """Draw a histogram of regret per cohort that measured it; None where all in each are alike."""
    return _histograms(tables["agents"], leading_regret(tables["agents"]), "regret per round")


def exploitability(tables: Tables) -> go.Figure | None:
    """Draw a histogram per cohort; None where exploitability was not measured."""
    return _histograms(tables["agents"], tables["agents"]["exploitability"], "exploitability")


def _histograms(agents: pd.DataFrame, values: pd.Series[float], word: str) -> go.Figure | None:
    rows = agents[["cohort"]].assign(value=values, heads=agents.get(COUNT, 1))
    groups = rows.groupby("cohort", sort=False)
    cohorts = {name: own for name, own in groups if own["value"].notna().any()}
    several = any(len(own["value"].dropna().unique()) > 1 for own in cohorts.values())
    if not several or not (values > 0).any():  # which the summary tells in full
        return None
    titles = [_title(name, own) for name, own in cohorts.items()]
    figure = charts.panels(titles, rows=len(cohorts), each=96, shared_xaxes="all")
    shades, edges = cohort_colours(agents), _edges(values.to_numpy(dtype=np.float64))
    for row, (name, own) in enumerate(cohorts.items(), 1):
        bars = _bars(own.dropna(), edges, shades[name])
        figure.add_trace(bars, row=row, col=1)
        figure.update_yaxes(title_text="agents", dtick=1 if bars.y.max() < 5 else None, row=row)
    figure.update_xaxes(title_text=word, row=len(cohorts))
    return figure.update_layout(bargap=0, showlegend=False)


def _title(name: Any, rows: pd.DataFrame) -> str:
    """Head a histogram by the cohort's name, how many agents it shows, and the worst of them."""
    known, every = rows.dropna()["heads"].sum(), rows["heads"].sum()
    told = f"{known:,}" if known == every else f"{known:,} of {every:,}"
    idle = f"{rows.loc[rows['value'] <= 0, 'heads'].sum() / known:.0%} at 0"
    return f"{charts.short(name)} ({told})<br>{idle}, worst {rows['value'].max():.4f}"


def _edges(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bins from zero, or the least value below it, to the greatest value."""
    low, high = min(0.0, float(np.nanmin(values))), float(np.nanmax(values))
    return np.linspace(low, high if high > low else low + TOLERANCE, BINS + 1)


def _bars(rows: pd.DataFrame, edges: np.ndarray[Any, Any], colour: str) -> go.Bar:
    counts, _ = np.histogram(rows["value"], edges, weights=rows["heads"])
    return go.Bar(
        x=(edges[1:] + edges[:-1]) / 2,
        y=counts,
        customdata=np.stack([edges[:-1], edges[1:]], axis=1),
        marker={"color": colour, "line": {"width": 0}},
        hovertemplate="%{customdata[0]:.4g} to %{customdata[1]:.4g}: %{y} agents<extra></extra>",
    )


def agents(tables: Tables) -> go.Figure | None:
    """Draw a dot per agent, which tells who it is; None where no two would be apart."""
    everybody = tables["agents"]
    shown, shades = drawn_agents(everybody), cohort_colours(everybody)
    if len(shown[["mean_loss", "regret"]].drop_duplicates()) < 2:
        return None
    part = f"{len(shown):,} of {len(everybody):,} agents"
    cohorts = shown["cohort"].unique()
    titles = [charts.heading(cohorts[0])] if len(cohorts) == 1 else []
    figure = charts.panels([part] if len(shown) < len(everybody) else titles, each=380)
    for name, members in shown.groupby("cohort", sort=False):
        figure.add_trace(
            go.Scatter(
                x=members["mean_loss"].to_numpy(),
                y=members["regret"].to_numpy(),
                text=[told(agent) for agent in members.to_dict("records")],
                customdata=members["agent"].to_numpy(),
                name=charts.short(name),
                mode="markers",
                marker={"color": shades[name], "size": 7, "opacity": 0.6},
                hovertemplate="%{text}",
            )
        )
    charts.zero(figure)
    figure.update_xaxes(title_text="mean loss, in [0, 1]")
    figure.update_layout(showlegend=len(cohorts) > 1)
    return figure.update_yaxes(title_text="regret per round")


def drawn_agents(agents: pd.DataFrame) -> pd.DataFrame:
    """Return the agents that are drawn, with their ``regret``: all, or a sample with the worst."""
    known = agents.assign(regret=leading_regret(agents)).dropna(subset=["regret", "mean_loss"])
    if len(known) <= MOST:
        return known
    worst = known["regret"].nlargest(MOST // 4).index
    rest = known.index.difference(worst).to_numpy()
    more = stream(0, "agent plot").choice(rest, MOST - len(worst), replace=False)
    return known.loc[np.sort(np.concatenate([worst.to_numpy(), more]))]


def told(agent: Mapping[Any, Any]) -> str:
    """Write what is known of an agent, a line each; what was not measured is left out."""
    numbers = {
        "mean utility per round, own units": (
            -(agent["loss_offset"] + agent["loss_scale"] * agent["mean_loss"])
        ),
        "mean loss": agent["mean_loss"],
        "swap regret": agent["swap_regret"],
        "decision swap regret": agent["decision_swap_regret"],
        "exploitability": agent["exploitability"],
    }
    utility, response = charts.plain(agent["utility"]), charts.plain(agent["response"])
    lines = [f"agent {agent['agent']}, {utility}, {response}"]
    lines += [f"one of {agent[COUNT]:,} alike"] if agent.get(COUNT, 1) > 1 else []
    lines += [f"{word}: {value:.4g}" for word, value in numbers.items() if np.isfinite(value)]
    return "<br>".join(lines)


def forecast(tables: Tables, names: Mapping[str, tuple[float, float]]) -> go.Figure | None:
    """Draw rolling means of each outcome and its drawn label forecast, a panel per coordinate.

    Parameters
    ----------
    names : mapping of str to pair of float
        What each outcome is called, and what its 0 and its 1 stand for.
    """
    rounds, forecasts = tables.get("rounds"), tables.get("forecasts")
    if rounds is None or len(rounds) < 2 or forecasts is None or "label_0" not in forecasts:
        return None
    labels = [f"label_{i}" for i in range(len(names))]
    said = forecasts[forecasts["drawn"]].groupby("round")[labels].mean()
    truth = rounds.set_index("round")[[f"y_{i}" for i in range(len(names))]]
    figure = charts.panels(list(map(charts.heading, names)), rows=len(names), each=120)
    pairs = {"outcome": ("#b0b0b0", 4), "forecast": (charts.VERMILLION, 1.8)}
    for row, (low, high) in enumerate(names.values(), 1):
        curves = truth.iloc[:, row - 1], said[labels[row - 1]].reindex(truth.index)
        for (word, (colour, width)), curve in zip(pairs.items(), curves, strict=True):
            drawn = rolling(low + (high - low) * curve, word, color=colour, width=width)
            figure.add_trace(drawn.update(legendgroup=word, showlegend=row == 1), row=row, col=1)
        mode = "normal" if min(low, high) < 0 else "nonnegative"  # no axis from -1 on for 0 alone
        figure.update_yaxes(rangemode=mode, row=row, col=1)
    figure.update_xaxes(title_text=f"round; {rolled(len(rounds))}", row=len(names))
    return figure


def rolling(curve: pd.Series[float], name: str, **style: Any) -> go.Scatter:
    """Draw the rolling mean of a column that is indexed by round."""
    points = thinned(curve.index.to_numpy())
    return charts.line(points, curve.rolling(_window(len(curve))).mean()[points], name, **style)


def rolled(rounds: int) -> str:
    """Say over what a rolling mean goes."""
    window = _window(rounds)
    return f"means of the last {window} rounds" if window > 1 else "values as they are"


def _window(rounds: int) -> int:
    return max(1, min(WINDOW, rounds // 5))


def certificates(tables: Tables) -> go.Figure | None:
    """Draw the sum so far of the positive certificates, against what is let pass."""
    rounds = tables.get("rounds")
    if rounds is None or len(rounds) < 2 or rounds["certificate"].isna().all():
        return None
    total = rounds["certificate"].clip(lower=0).fillna(0).cumsum().to_numpy()
    points = thinned(np.arange(len(total)))
    number = rounds["round"].to_numpy()[points]
    allowed = np.array([slack_limit(int(t) + 1) for t in number])
    solver = charts.line(
        number, total[points], "left open by the solver", color=charts.BLUE, width=2
    )
    passed = charts.line(number, allowed, "let pass", color=charts.FAINT, width=1.5, dash="dash")
    figure = charts.panels(each=220).add_traces([solver, passed], rows=1, cols=1)
    charts.hold(figure, 1, *figure.data)
    charts.name_at_ends(figure, 220)
    figure.update_xaxes(title_text="round")
    return figure.update_yaxes(title_text="sum of certificates")
