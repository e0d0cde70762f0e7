"""The blocks of a broadcast: which cohorts share a basis, and their coefficients in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.numerics.storage import side_by_side
from regretless.scenarios.build.bases import make, natural_kind, variant
from regretless.scenarios.build.populations import Draft

Key = tuple[str, tuple[float, ...], str]


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of a broadcast.

    Parameters
    ----------
    block_of : tuple of int
        The block of each cohort.
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
        kind = natural_kind(draft.told) if wish.kind == "auto" else wish.kind
        key = kind, variant(kind, draft.told), repr(sorted(wish.parameters.items()))
        groups.setdefault(key, []).append(place)
    kinds = [key[0] for key in groups]
    names = tuple(
        kind if kinds.count(kind) == 1 else f"{kind}-{1 + kinds[:i].count(kind)}"
        for i, kind in enumerate(kinds)
    )
    bases = tuple(
        _basis(kind, [drafts[place] for place in places])
        for kind, places in zip(kinds, groups.values(), strict=True)
    )
    block_of = {place: block for block, places in enumerate(groups.values()) for place in places}
    return Layout(names, bases, tuple(block_of[place] for place in range(len(drafts))))


def _basis(kind: str, drafts: Sequence[Draft]) -> Basis:
    """Make the basis of cohorts that share it, with the parameters that all of them give."""
    first = drafts[0].spec
    losses = [draft.told for draft in drafts]
    losses += [draft.loss for draft in drafts if draft.reported is not None]
    return make(f"cohort.{first.name}.basis", kind, losses, **first.basis.parameters)


def coefficients(name: str, basis: Basis, loss: Loss) -> tuple[Array, Array]:
    """Return a cohort's coefficients; UserError where the basis does not span its losses."""
    try:
        offset, weights = basis.coefficients(loss)
    except ValueError as reason:
        raise UserError(
            f"cohort.{name}.basis: {reason}; leave the basis out for the default"
        ) from reason
    return offset, side_by_side(weights)
