"""What never goes together in a scenario file, and why: keys of one kind of cohort or forecaster.

The models of ``cohort`` and ``forecaster`` read their keys here. ``ROWS`` is the table of the docs,
and the test of all pairs of features refuses any other reason.
"""

from typing import NamedTuple

SMOOTH = 'is the smoothness of response = "quantal" or "ensemble"'
COVERED = "a representative stands for a loss in the basis, which this response does not read"
ALONE = "each agent has its own path of actions"
SETTLED = "is for learners and for agents of your own"
UNREAD = "is read by agents of your own alone"
TOGETHER = "agents with memory enter and leave together, by enters and exits"
DEAF = "learners hear no forecast"
UNASKED = "learners report nothing to the forecaster"
OURS = "a model alone corrects nothing"
APART = "distinguishes agents with equal losses"
HOPS = "decides for each agent when it hears the forecast"
SINGLY = "treats agents one by one"
PROTECTED = "agents who enter late are served through losses that are protected already"
HEARD = "agents who enter late hear a forecast that exists already"
BEFORE = "the forecaster asks for losses before the first round"
UNSPANNED = "no block of the forecast spans its losses"
UNREPORTED = "a representative stands for true losses, not for reported ones"
MOVED = "[market] moves outcomes out of a [game] or [space]"
UNFORESEEN = "agents have accounts, or losses of their own, which the forecaster cannot compute"
CURVED = "is for one number in which all losses are linear"


class Row(NamedTuple):
    """A feature, others that never go with it, and the reason."""

    one: str
    others: tuple[str, ...]
    why: str


REMEMBERING = ("learner", "own agent")
CORRECTING = (
    "weights", "intervals", "off_ties", "events", "objective", "models", "reference", "band",
    "give_up",
)  # fmt: skip
ROWS = (
    Row("cover", ("quantal", "ensemble", "certainty-equivalent", *REMEMBERING), COVERED),
    Row("multiplicity", ("private", *REMEMBERING), ALONE),
    Row("multiplicity", ("entry by rate", "exit by rate", "budget"), APART),
    Row("multiplicity", ("network",), HOPS),
    Row("multiplicity", ("accounts",), SINGLY),
    Row("entry by rate", REMEMBERING, TOGETHER),
    Row("exit by rate", REMEMBERING, TOGETHER),
    Row("reports", ("learner",), UNASKED),
    Row("reports", ("cover",), UNREPORTED),
    Row("entry by round", ("cover",), PROTECTED),
    Row("entry by round", ("reports",), BEFORE),
    Row("entry by round", ("idiosyncratic",), UNSPANNED),
    Row("polytope", ("lagged prices", "same-round prices", "another market"), MOVED),
    Row("polytope", ("accounts", "budget"), MOVED),
    Row("welfare", ("accounts", "budget"), UNFORESEEN),
    Row("everyone", ("idiosyncratic",), CURVED),
    Row(
        "model alone",
        (
            "intervals", "second-order weights", "exponential weights", "off-ties",
            "objective", "welfare", "events of coordinates", "events of losses", "models",
            "reference", "everyone",
        ),
        OURS,
    ),
)  # fmt: skip

_RESPONDING = {
    "settings": f"{SETTLED}; drop it",
    "signal": f"{UNREAD}; name one as response, or drop it",
}
_SMOOTH = {"eta": f"{SMOOTH}; use one of them"}
_COVERED = {"cover": f'{COVERED}; use response = "best-response"'}
_ALONE = {"multiplicity": f"{ALONE}; drop it"}
_REMEMBERING = (
    dict.fromkeys(("entry_rate", "exit_rate"), f"{TOGETHER}; use these")
    | {"acts_on": "is for those who respond to the forecast; drop it"}
    | _SMOOTH | _COVERED | _ALONE
)  # fmt: skip
COHORTS = {  # by kind: the keys without a meaning, and why
    "best-response": _RESPONDING | _SMOOTH,
    "quantal": _RESPONDING | _COVERED,
    "ensemble": _RESPONDING | _COVERED,
    "private": _RESPONDING | _SMOOTH | _ALONE,
    "rule": _RESPONDING | _SMOOTH | _COVERED,
    "learner": _REMEMBERING
    | {
        "signal": f"{UNREAD}; name one as response, or drop it",
        "gamma": f"{DEAF}; drop it",
        "reports": f"{UNASKED}; drop it",
    },
    "agent": _REMEMBERING,
}
LATE = {  # keys of a cohort that is there from the start, and why another cannot have them
    "cover": PROTECTED,
    "basis": HEARD,
    "reports": BEFORE,
}
FORECASTERS = {
    "decision-swap": {},
    "calibration": {},
    "baseline": dict.fromkeys(CORRECTING, f'{OURS}; use kind = "decision-swap"'),
}


def kind_of_forecaster(name: object) -> str:
    """Tell which kind a forecaster is of, by the name that a file gives it."""
    return str(name) if name in ("decision-swap", "calibration") else "baseline"
