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


def arguments(made: Mapping[str, Any], objects: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an ``OnlineOmnipredictor`` is to be made with.

    Parameters
    ----------
    made : mapping
        As it was written.
    objects : mapping of str to model
        Those that are no plain values.

    Raises
    ------
    ValueError
        If a loss is unknown.
    """
    named = made["models"]
    return {
        "losses": {name: _read(tree) for name, tree in made["losses"].items()},
        "scale": {name: tuple(ends) for name, ends in made["scale"].items()},
        "models": named if named == "panel" else {n: (named | objects)[n] for n in made["order"]},
        "forecasts": made["forecasts"],
        "actions": made["actions"],
        "seed": int(made["seed"]),
    }


def _read(tree: dict[str, Any]) -> Loss:
    kind = tree["kind"]
    if kind not in forms.__all__:
        raise ValueError(f"unknown loss '{kind}'")
    loss: Loss = getattr(forms, kind)(**{k: v for k, v in tree.items() if k != "kind"})
    return loss
