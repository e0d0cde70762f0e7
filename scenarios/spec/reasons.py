"""Keys that mean nothing for a kind of cohort or forecaster, and pairs that never meet: why.

The models of ``cohort`` and ``forecaster`` read their keys here, and so does the table of the docs.
"""

SMOOTH = 'is the smoothness of response = "quantal" or "ensemble"; use one of them'
COVERED = 'means nothing here: a representative best-responds; use response = "best-response"'
ALONE = "means nothing here: a path of actions is each agent's own; drop it"
SETTLED = "is for learners and for agents of your own; drop it"
UNREAD = "is read by nobody; name an agent of your own as response, or drop it"
TOGETHER = "means nothing here: agents with a memory come and go together; use enters and exits"
DEAF = "means nothing here: learners hear no forecast; drop it"
UNASKED = "means nothing here: the forecaster asks nobody for a loss who does not respond; drop it"
OURS = 'is for kind = "decision-swap"; use that, or drop it'

RESPONDING = {"settings": SETTLED, "signal": UNREAD}
REMEMBERING = {
    "eta": SMOOTH,
    "cover": COVERED,
    "multiplicity": ALONE,
    "entry_rate": TOGETHER,
    "exit_rate": TOGETHER,
    "reports": UNASKED,
    "acts_on": UNASKED,
}
COHORTS = {  # by kind: the keys without a meaning, and why
    "best-response": RESPONDING | {"eta": SMOOTH},
    "quantal": RESPONDING | {"cover": COVERED},
    "ensemble": RESPONDING | {"cover": COVERED},
    "private": RESPONDING | {"eta": SMOOTH, "cover": COVERED, "multiplicity": ALONE},
    "rule": RESPONDING | {"eta": SMOOTH, "cover": COVERED},
    "learner": REMEMBERING | {"signal": UNREAD, "gamma": DEAF},
    "agent": REMEMBERING,
}
LATE = {  # keys of a cohort that is there from the start, and why another cannot have them
    "cover": "who enters late is served through losses that are protected already",
    "basis": "who enters late hears a forecast that is there already",
    "reports": "the forecaster asks for losses before the first round",
}
UNREPORTED = "a representative stands for what agents are, not for what they say"

GUIDED = dict.fromkeys(("events", "objective", "models", "reference", "band", "give_up"), OURS)
PLAYING = dict.fromkeys(("weights", "intervals", "off_ties"), OURS)
FORECASTERS = {
    "decision-swap": {},
    "calibration": GUIDED,
    "baseline": GUIDED | PLAYING,
}


def kind_of_forecaster(name: object) -> str:
    """Tell which kind a forecaster is of, by the name that a file gives it."""
    return str(name) if name in ("decision-swap", "calibration") else "baseline"
