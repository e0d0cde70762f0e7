"""What never goes together in a scenario file, and why: keys of one kind of cohort or forecaster.

The models of ``cohort`` and ``forecaster`` read their keys here. ``docs/combinations.md`` has the
table of features, and the test of all pairs of them refuses any other reason.
"""

COVERED = "a representative stands for a loss in the basis, which this response does not read"
APART = "distinguishes agents with equal losses"
HOPS = "decides for each agent when it hears the forecast"
SINGLY = "treats agents one by one"
OWN_PATH = "each agent has its own path of actions"
DEAF = "learners hear no forecast"
MOVED = "[market] moves outcomes out of a [game] or [space]"
CURVED = "is for one number in which all losses are linear"

_RESPONDING = {
    "settings": "is for learners and for agents of your own; drop it",
    "signal": "is read by agents of your own alone; name one as response, or drop it",
}
_SMOOTH = {"eta": 'is the smoothness of response = "quantal" or "ensemble"; use one of them'}
_REMEMBERING = {"acts_on": "is for those who respond to the forecast; drop it"} | _SMOOTH
COHORTS = {  # by kind: the keys without a meaning, and why
    "best-response": _RESPONDING | _SMOOTH,
    "quantal": _RESPONDING,
    "ensemble": _RESPONDING,
    "private": _RESPONDING | _SMOOTH,
    "rule": _RESPONDING | _SMOOTH,
    "learner": _REMEMBERING
    | {
        "signal": _RESPONDING["signal"],
        "gamma": f"{DEAF}; drop it",
        "reports": f"{DEAF}, and report nothing to the forecaster; drop it",
        "cover": f"{DEAF}, and nothing is served to them; drop it",
    },
    "agent": _REMEMBERING,
}
# Forecasters that are no models.
OURS = ("decision-swap", "calibration", "none")
BASELINE = dict.fromkeys(
    ("weights", "intervals", "off_ties", "events", "objective", "models", "reference", "band",
     "give_up", "quantiles", "quantile_steps"),
    'a model alone corrects nothing; use kind = "decision-swap"',
)  # fmt: skip
SILENT = dict.fromkeys(
    (*BASELINE, "delay", "hull"), 'nobody hears a forecast of kind "none"; drop it'
)
