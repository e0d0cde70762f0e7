"""Which model would have served whom better?

Two kinds of station stock bicycles by the hour from the same forecast. For one running out is
costly, for the other what is left over. Their data is a table (here: rides in Washington by the
hour), and the table ``verdict`` of the run says what each would have lost by following a simple
model instead.
"""

from __future__ import annotations

from shown import COLOURS, finish, sheet

from regretless import load

ROUNDS = 600
KINDS = {"a missing bicycle is costly": (4.0, 1.0), "a bicycle left over is costly": (1.0, 4.0)}
STATIONS = [
    {"name": name, "utility": "newsvendor", "count": 10, "actions": 9}
    | {"parameters": {"underage": short, "overage": over}}
    for name, (short, over) in KINDS.items()
]
# in place of the file of the scenario, data={"file": "mine.csv", "outcomes": [...], "scale": ...}
model = load("rush-hours", rounds=ROUNDS, forecaster={}, cohort=STATIONS).build(seed=1)
model.run()
verdict = model.verdict_frame()
models = verdict[(verdict["kind"] == "model") & (verdict["cohort"] != "everybody")]
best = models.loc[models.groupby("cohort", sort=False)["difference"].idxmin()]
worst = models.loc[models.groupby("cohort", sort=False)["difference"].idxmax()]
told = [
    f"{row['name']} where {row['cohort']}, {row['difference']:+.4f} "
    f"({row['low']:.4f} to {row['high']:.4f})"
    for _, row in best.iterrows()
]
last = worst.iloc[0]
answer = (
    "Average loss per round minus that with the forecast, best of seven models in hindsight: "
    f"{'; '.join(told)}. Worst for the first: {last['name']}, "
    f"{last['difference']:+.4f} ({last['low']:.4f} to {last['high']:.4f})."
)
title = "Average loss per round with a model, minus that with the forecast"
figure, axes = sheet(title, "positive: following the forecast was better")
names = list(dict.fromkeys(models["name"]))
for number, (cohort, rows) in enumerate(models.groupby("cohort", sort=False)):
    at = [place + 0.2 * number - 0.1 for place in range(len(names))]
    own = rows.set_index("name").loc[names]
    axes.errorbar(
        at,
        own["difference"],
        yerr=own["high"] - own["difference"],
        fmt="o",
        color=COLOURS[number],
        label=cohort,
        capsize=3,
    )
axes.axhline(0, color="black", linewidth=0.8)
axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
axes.legend(frameon=False)
finish("whose_model", models, figure, answer)
