"""A fitted model in one file of arrays and plain text: nothing in it is code.

Losses, policies and bases of this project are data and are written as their numbers; whatever is a
function of the user's is refused in one line. On reading, the basis is made anew; a conditional law
is its members' arrays, and an online run's memories are put into a forecaster made of the same
losses, so that predictions come from the same computation as before.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regretless.forecaster.bases import BernsteinBasis, LinearBasis, PowerBasis
from regretless.forecaster.omniprediction import nets, policies
from regretless.forecaster.omniprediction.batch_bounds import OnlineRegret
from regretless.forecaster.omniprediction.choices import as_list
from regretless.forecaster.omniprediction.conditional import Conditional, Examples, Seen
from regretless.forecaster.omniprediction.fitting import Fitted, Listed, Settings, player_for
from regretless.forecaster.omniprediction.laws.members import (
    Boosted,
    Lattice,
    Leaf,
    Linear,
    Marginal,
    Neighbours,
    Residuals,
)
from regretless.forecaster.omniprediction.laws.mixture import ConditionalLaw
from regretless.forecaster.omniprediction.laws.trees import Trees
from regretless.forecaster.omniprediction.nets import ContinuousLoss
from regretless.forecaster.omniprediction.predictors import KeptPredictors, Snapshots
from regretless.forecaster.omniprediction.spans import default_basis
from regretless.forecaster.omniprediction.suggestions import called
from regretless.market import losses
from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis

FORMAT = "regretless offline omnipredictor 5"
FORMS: dict[str, type[Loss]] = {
    kind.__name__: kind
    for kind in (
        losses.Convex1D,
        losses.ExponentialOfSum,
        losses.Linear,
        losses.MinimumOfRatios,
        losses.PowerOfSum,
        losses.SeparablePower,
    )
}
CONTINUOUS: dict[str, type[nets.SquaredError | nets.Pinball]] = {
    "SquaredError": nets.SquaredError,
    "Pinball": nets.Pinball,
}
APART = {"losses", "policies", "basis", "cv"}  # parameters that are not plain values
RESULTS = ("n_features_in_", "bound_", "certified_on_holdout_")
MEMBERS = {
    kind.__name__: kind
    for kind in (Leaf, Neighbours, Residuals, Lattice, Marginal, Linear, Boosted, Trees)
}


def save(model: Any, path: Path, notes: dict[str, Any]) -> None:
    """Write a fitted model atomically; UserError where a part of it is code."""
    tree = {
        "format": FORMAT,
        "notes": notes,
        "parameters": {n: value for n, value in model.get_params().items() if n not in APART},
        "losses": numbered(loss_numbers(loss) for loss in as_list(model.losses)),
        "policies": numbered(policy_numbers(policy) for policy in model.policies),
        "basis": basis_numbers(model.basis),
        "plain": {name: getattr(model, name) for name in RESULTS},
        "names": list(getattr(model, "feature_names_in_", [])),
        "ends": model.ends_,
        "readout": model.readout_,
        "fitted": fitted_numbers(model.fitted_),
    }
    if model.net_ is not None:
        tree["net"] = model.net_
    if model.held_ is not None:
        held = model.held_
        parts_of = held.seen.features, held.seen.suggestions, held.outcomes
        tree["held"] = dict(zip(("features", "suggestions", "outcomes"), parts_of, strict=True))
    if model.certified_fit_ is not model.fitted_:
        tree["certified"] = fitted_numbers(model.certified_fit_)
    try:
        checkpoint.save(path, tree)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a file to write") from error


def load(kind: Any, path: Path) -> Any:
    """Read a model; UserError if there is none in the file."""
    if not path.is_file():
        raise UserError(f"model '{path}' does not exist; check the path")
    with readable(path):
        tree = checkpoint.load(path)
        model = rebuilt(kind, tree) if tree.get("format") == FORMAT else None
    if model is None:
        raise UserError(f"'{path}' is no model of this version; fit it again")
    return model


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what a damaged or forged file may lead to into a UserError that names it."""
    try:
        yield
    except UserError:
        raise
    except checkpoint.DAMAGED as error:
        raise UserError(f"'{path}' is no readable model; fit it again") from error


def rebuilt(kind: Any, tree: dict[str, Any]) -> Any:
    """Make the model of a tree."""
    own = [loss_of(part) for part in parts(tree["losses"])]
    rules = [policy_of(part) for part in parts(tree["policies"])]
    basis = basis_of(tree["basis"])
    model = kind(own, rules, basis=basis, **tree["parameters"])
    model.net_ = tree.get("net")
    finite = [loss.on(model.net_) if isinstance(loss, ContinuousLoss) else loss for loss in own]
    used = default_basis(finite, model.delta) if basis is None else basis
    listed = Listed.of(finite, used)
    for name, value in tree["plain"].items():
        setattr(model, name, value)
    if tree["names"]:
        model.feature_names_in_ = np.asarray(tree["names"], dtype=object)
    model.basis_, model.ends_, model.readout_ = used, tree["ends"], tree["readout"]
    model.notes_, model.held_, held = tree["notes"], None, tree.get("held")
    if held is not None:
        seen = Seen(held["features"], held["suggestions"])
        model.held_ = Examples(seen, held["outcomes"], np.ones(len(held["outcomes"])))
    own = tree["fitted"]
    model.fitted_ = run_of(model, listed, own) if model.base == "none" else law_of(listed, own)
    certified = tree.get("certified")
    model.certified_fit_ = model.fitted_ if certified is None else law_of(listed, certified)
    return model


def fitted_numbers(fitted: Fitted | Conditional) -> dict[str, Any]:
    """Return the numbers of either kind of fit."""
    if isinstance(fitted, Conditional):
        law = fitted.law
        members = [{"name": n, "data": member_numbers(m)} for n, m in law.members.items()]
        return {
            "rounds": fitted.rounds,
            "outcomes": law.outcomes,
            "shares": law.shares,
            "members": numbered(members),
        }
    snapshots = fitted.predictors.snapshots
    return {
        "rounds": fitted.rounds,
        "played": fitted.bias.rounds,
        "slack": fitted.bias.slack,
        "memory": snapshots.arrays,
        "times": snapshots.times,
        "online": {str(s): own.sums for s, own in enumerate(fitted.online)},
    }


def member_numbers(part: Any) -> dict[str, Any]:
    """Return a law's member, or a part of one, as its kind and its fields."""
    kind = type(part).__name__
    found: dict[str, Any] = {}
    for f in fields(part):
        value = getattr(part, f.name)
        if isinstance(value, tuple):
            value = numbered(member_numbers(one) for one in value)
        found[f.name] = member_numbers(value) if is_dataclass(value) else value
    return {"kind": kind, "fields": found}


def member_of(part: dict[str, Any]) -> Any:
    """Make it again."""
    if "kind" not in part:
        return tuple(member_of(one) for one in parts(part))
    own = part["fields"].items()
    made = {name: member_of(value) if isinstance(value, dict) else value for name, value in own}
    return MEMBERS[part["kind"]](**made)


def law_of(listed: Listed, tree: dict[str, Any]) -> Conditional:
    """Make a fitted law."""
    members = {part["name"]: member_of(part["data"]) for part in parts(tree["members"])}
    law = ConditionalLaw(tree["outcomes"], members, tree["shares"])
    return Conditional(listed, law, tree["rounds"])


def run_of(model: Any, listed: Listed, tree: dict[str, Any]) -> Fitted:
    """Make a fitted online run: its kept memories in a player made of the same losses."""
    rules = model.policies
    player = player_for(listed, len(rules), Settings.of(model, tree["played"]), tree["played"])
    snapshots = Snapshots(player, len(tree["times"]))
    if {n: a.shape for n, a in snapshots.arrays.items()} != {
        n: a.shape for n, a in tree["memory"].items()
    }:
        raise UserError("the model's memory does not fit its losses; fit it again")
    snapshots.arrays, snapshots.times = tree["memory"], tree["times"]
    snapshots.kept = len(tree["times"])
    player.time, player.slack = tree["played"], tree["slack"]
    online = []
    for s, offset in enumerate(listed.offsets):
        regret = OnlineRegret(len(offset), offset.shape[1], len(rules))
        regret.sums, regret.rounds = tree["online"][str(s)], tree["rounds"]
        online.append(regret)
    bias = player.bias_bound()
    predictors = KeptPredictors(snapshots)
    return Fitted(listed, predictors, tuple(online), tree["rounds"], len(rules), bias)


def numbered(items: Any) -> dict[str, Any]:
    """Write a sequence as a table of a tree."""
    return {str(i): item for i, item in enumerate(items)}


def parts(table: dict[str, Any]) -> Sequence[Any]:
    """Read it again."""
    return [table[str(i)] for i in range(len(table))]


def loss_numbers(loss: Any) -> dict[str, Any]:
    """Return the numbers of a loss; UserError for a function of the user's."""
    name = type(loss).__name__
    if name in CONTINUOUS or name in FORMS:
        numbers = {f.name: getattr(loss, f.name) for f in fields(loss) if f.init}
        return {"form": name, "numbers": numbers}
    raise UserError(f"a {name} is a function and cannot be saved; use a form of market.losses")


def loss_of(part: dict[str, Any]) -> Any:
    """Make a loss of its numbers."""
    known: dict[str, Any] = FORMS | CONTINUOUS
    return known[part["form"]](**part["numbers"])


def policy_numbers(policy: Any) -> dict[str, Any]:
    """Return the numbers of a policy; UserError for code."""
    for name, kind in policies.KINDS.items():
        if type(policy) is kind:
            values = {f.name: getattr(policy, f.name) for f in fields(policy)}
            numbers = {n: v if np.isscalar(v) else np.asarray(v) for n, v in values.items()}
            return {"kind": name, "numbers": numbers}
    known = ", ".join(kind.__name__ for kind in policies.KINDS.values())
    raise UserError(f"policy {called(policy)} is code and cannot be saved; use one of: {known}")


def policy_of(part: dict[str, Any]) -> Any:
    """Make a policy of its numbers."""
    return policies.KINDS[part["kind"]](**part["numbers"])


def basis_numbers(basis: Basis | None) -> dict[str, Any] | None:
    """Return the numbers of a basis that was given; None for the default one."""
    if basis is None:
        return None
    if isinstance(basis, LinearBasis):
        return {"kind": "linear", "outcomes": basis.outcomes}
    if isinstance(basis, PowerBasis) and basis.error == 0:
        return {"kind": "powers", "outcomes": basis.outcomes, "exponents": basis.exponents}
    if isinstance(basis, BernsteinBasis):
        degree = basis.degree
        return {"kind": "bernstein", "outcomes": basis.outcomes, "degree": degree}
    name = type(basis).__name__
    raise UserError(f"basis {name} cannot be saved; leave basis out, or use linear or powers")


def basis_of(part: dict[str, Any] | None) -> Basis | None:
    """Make the basis again."""
    if part is None:
        return None
    if part["kind"] == "linear":
        return LinearBasis(part["outcomes"])
    if part["kind"] == "powers":
        return PowerBasis(part["exponents"], part["outcomes"])
    return BernsteinBasis(part["outcomes"], part["degree"])
