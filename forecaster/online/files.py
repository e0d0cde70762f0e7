"""What a file of an ``OnlineOmnipredictor`` holds beside its state: how it was made."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from regretless.market import losses as forms
from regretless.market.core.checkpoint import remembers
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss


def written(name: str, loss: Loss) -> dict[str, Any]:
    """Return a loss as arrays and plain values; UserError where it is code."""
    kind = type(loss).__name__
    tree = {field.name: getattr(loss, field.name) for field in fields(loss)}
    if kind not in forms.__all__ or not all(map(remembers, tree.values())):
        raise UserError(f"losses['{name}'] is code of its own and cannot be saved")
    return {"kind": kind} | tree


def arguments(
    made: Mapping[str, Any], models: Mapping[str, Any], policies: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what an ``OnlineOmnipredictor`` is to be made with, ``made`` being as it was written.

    Models and policies that are no plain values are given, by name, and by loss and name: UserError
    if one of them is wanted, ValueError if a loss is unknown.
    """
    named = made["models"]
    for name in sorted(set(made["objects"]) - set(models)):
        raise UserError(f"load: give models = {{'{name}': ...}}, as it was made")
    return {
        "losses": {name: _read(tree) for name, tree in made["losses"].items()},
        "scale": {name: tuple(ends) for name, ends in made["scale"].items()},
        "models": named if named == "panel" else {n: (named | models)[n] for n in made["order"]},
        "forecasts": made["forecasts"],
        "policies": {
            loss: {name: _rule(loss, name, one, policies) for name, one in told.items()}
            for loss, told in made["policies"].items()
        },
        "actions": made["actions"],
        "seed": int(made["seed"]),
    }


def _rule(loss: str, name: str, told: Any, given: Mapping[str, Mapping[str, Any]]) -> Any:
    if told is None and name not in given.get(loss, {}):
        raise UserError(f"load: give policies = {{'{loss}': {{'{name}': ...}}}}, as it was made")
    return given[loss][name] if told is None else told


def _read(tree: dict[str, Any]) -> Loss:
    kind = tree["kind"]
    if kind not in forms.__all__:
        raise ValueError(f"unknown loss '{kind}'")
    loss: Loss = getattr(forms, kind)(**{k: v for k, v in tree.items() if k != "kind"})
    return loss
