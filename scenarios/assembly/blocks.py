"""The blocks of a broadcast: which cohorts share a basis, and their coefficients in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regretless.forecaster.bases import natural_kind, variant
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.numerics.storage import side_by_side
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.assembly.populations import Draft

Key = tuple[str, tuple[float, ...], str]


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of a broadcast.

    ``block_of`` (tuple of int): the block of each cohort.
    """

    names: tuple[str, ...]
    bases: tuple[Basis, ...]
    block_of: tuple[int, ...]


def layout(drafts: Sequence[Draft]) -> Layout:
    """Put cohorts whose losses live in the same basis into one block.

    UserError if a basis that is asked for does not serve the losses.
    """
    groups: dict[Key, list[int]] = {}
    for place, draft in enumerate(drafts):
        wish = draft.spec.basis
        kind = natural_kind(draft.declared) if wish.kind == "auto" else wish.kind
        key = kind, variant(kind, draft.declared), repr(sorted(wish.parameters.items()))
        groups.setdefault(key, []).append(place)
    kinds = [key[0] for key in groups]
    names = tuple(
        kind if kinds.count(kind) == 1 else f"{kind}-{1 + kinds[:i].count(kind)}"
        for i, kind in enumerate(kinds)
    )
    bases = []
    for kind, places in zip(kinds, groups.values(), strict=True):
        own = [drafts[place] for place in places]
        losses = [draft.declared for draft in own]
        losses += [draft.loss for draft in own if draft.reported is not None]
        first = own[0].spec  # all of them give the same parameters
        where = f"cohort.{first.name}.basis"
        bases.append(make(where, kind, losses, **first.basis.parameters))
    block_of = {place: block for block, places in enumerate(groups.values()) for place in places}
    return Layout(names, tuple(bases), tuple(block_of[place] for place in range(len(drafts))))


def make(where: str, kind: str, losses: Sequence[Loss], **parameters: Any) -> Basis:
    """Make the basis for cohorts with these losses.

    UserError if the kind is unknown, or the losses or parameters do not fit it.

    Parameters
    ----------
    where : str
        The key in the scenario file, for error lines.
    losses : sequence of stacks
    **parameters
        From the scenario file.
    """
    if kind not in register.basis:
        known = closest(kind, ["auto", *register.basis.names()])
        raise UserError(f"{where}: unknown basis '{kind}'; {known}")
    error = parameters.get("error", 1.0)
    if isinstance(error, bool) or not isinstance(error, int | float) or error <= 0:
        raise UserError(f"{where}: error = {error!r}; give a positive number")
    basis: Basis = construct(f"{where} '{kind}'", register.basis[kind], losses, **parameters)
    return basis


def coefficients(name: str, basis: Basis, loss: Loss) -> tuple[Array, Array]:
    """Return a cohort's coefficients; UserError where the basis does not span its losses."""
    try:
        offset, weights = basis.coefficients(loss)
    except ValueError as reason:
        raise UserError(
            f"cohort.{name}.basis: {reason}; leave the basis out for the default"
        ) from reason
    return offset, side_by_side(weights)
