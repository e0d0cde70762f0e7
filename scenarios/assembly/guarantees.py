"""What every cohort of a market is promised, and why, once its blocks have forecasters.

``find_guarantees`` is a step of ``build``. A bound holds with probability 0.99 for all cohorts at
once, so that it depends on how many promises are made in the whole run.
"""

from collections.abc import Sequence
from dataclasses import replace

from regretless.forecaster.events.cover import paper_gamma
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.round import Block
from regretless.scenarios.assembly.blocks import BlockPlan, plan_of
from regretless.scenarios.assembly.cohorts import ServedCohort
from regretless.scenarios.assembly.latecomers import guarantee_in_own_block, serve_guest
from regretless.scenarios.assembly.theorems import Span, find_guarantee


def find_guarantees(
    cohorts: Sequence[ServedCohort],
    plans: Sequence[BlockPlan],
    blocks: Sequence[Block],
    *,
    rounds: int,
    windows: Sequence[Span] = (),
) -> list[ServedCohort]:
    """Return the cohorts with what they are promised, in the same order.

    ``blocks`` are made of the ``plans``. A forecaster follows the stays of those whom it serves
    before those of its guests.
    """
    by_name = {served.spec.name: served for served in cohorts}
    promises = 0
    for plan in plans:
        promises += sum(by_name[name].promises for name in (*plan.served, *plan.guests))
    for plan, block in zip(plans, blocks, strict=True):
        for name in plan.served:
            served = by_name[name]
            if served.spec.enters:
                guarantee = guarantee_in_own_block(served, block, promises)
            else:
                guarantee = find_guarantee(served, block, promises, windows)
            by_name[name] = replace(served, guarantee=guarantee)
        for name in plan.guests:
            served = by_name[name]
            by_name[name] = serve_guest(
                served,
                block,
                promises=promises,
                reach=served.spec.gamma or paper_gamma(block.basis.size, rounds),
            )
    for name, served in by_name.items():
        if plan_of(name, plans) is None:
            by_name[name] = replace(served, guarantee=_promise_to_bystanders(served))
    return [by_name[served.spec.name] for served in cohorts]


def _promise_to_bystanders(served: ServedCohort) -> Guarantee:
    """Promise nothing to learners beside a broadcast that is made for others."""
    spec = served.spec
    note = f"{spec.name}: no guarantee, since {served.cohort.unguided}"
    if spec.enters:
        note = f"{spec.name}: {spec.count} agents entered before round {spec.enters}; {note}"
    return Guarantee(note=note)
