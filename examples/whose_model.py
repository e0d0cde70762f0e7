"""Which model would have served whom better?

Two kinds of station stock bicycles by the hour from the same forecast. For one running out is
costly, for the other what is left over. Their data is a table (here: rides in Washington by the
hour), and the table ``verdict`` of the run says what each would have lost by following a simple
model instead. For data of your own, pass ``data={"file": "mine.csv", "outcomes": [...], "scale":
...}`` to ``load``.

    python examples/whose_model.py figures

prints the best model for either kind, and the worst for the first. All nine models are in
figures/whose_model.csv and figures/whose_model.png.
"""

from __future__ import annotations

import pandas as pd
from helpers.output import COLOURS, new_figure, publish

from regretless import load

ROUNDS = 600
WIDTH_OF_PAIR = 0.2  # between the points of the two cohorts at one model, in the figure
STATIONS = {"utility": "newsvendor", "count": 10, "actions": 9}
COHORTS: list[dict[str, object]] = [
    {
        "name": "a missing bicycle is costly",
        "parameters": {"underage": 4.0, "overage": 1.0},
        **STATIONS,
    },
    {
        "name": "a bicycle left over is costly",
        "parameters": {"underage": 1.0, "overage": 4.0},
        **STATIONS,
    },
]


def describe_difference(row: pd.Series) -> str:
    """Write the difference in a row of the verdict, with its sign and its 95 % interval."""
    return f"{row['difference']:+.4f} ({row['low']:.4f} to {row['high']:.4f})"


model = load("rush-hours", rounds=ROUNDS, forecaster={}, cohort=COHORTS).build(seed=1)
model.run()
verdict = model.verdict_frame()
is_of_model = (verdict["kind"] == "model") & (verdict["cohort"] != "everybody")
differences = verdict[is_of_model]  # a model's average loss minus the forecast's, by cohort

best_models = []
for cohort, rows in differences.groupby("cohort", sort=False):
    best = rows.nsmallest(1, "difference").iloc[0]
    best_models.append(f"{best['name']} where {cohort}, {describe_difference(best)}")
of_first_cohort = differences[differences["cohort"] == COHORTS[0]["name"]]
worst = of_first_cohort.nlargest(1, "difference").iloc[0]
answer = (
    "Average loss per round minus that with the forecast, best of nine models in hindsight: "
    f"{'; '.join(best_models)}. Worst for the first: {worst['name']}, "
    f"{describe_difference(worst)}."
)

figure, axes = new_figure(
    "Average loss per round with a model, minus that with the forecast",
    measured="positive: following the forecast was better",
)
names = list(differences["name"].unique())
for index, (cohort, rows) in enumerate(differences.groupby("cohort", sort=False)):
    rows_by_model = rows.set_index("name").loc[names]
    axes.errorbar(
        [position + WIDTH_OF_PAIR * (index - 0.5) for position in range(len(names))],
        rows_by_model["difference"],
        yerr=rows_by_model["high"] - rows_by_model["difference"],
        fmt="o",
        color=COLOURS[index],
        label=str(cohort),
        capsize=3,
    )
axes.axhline(0, color="black", linewidth=0.8)
axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
axes.legend(frameon=False)
publish("whose_model", answer=answer, table=differences, figure=figure)
