"""What is promised: one class of bounds for each kind of events, one method for each statement.

The right-hand sides of the theorems, with explicit constants. They are proved in docs/theory.md,
whose numbers stand below. ``weights.BoundInputs`` holds what every bound depends on.

Notation: N = 2 n |E| experts, T rounds, S the sum of the positive certificates (weights normalised
to 1), n_T(E) the occupancy of an event, r(a) in R^n the coefficients of a loss, z a band.

======================  ==================================================  ====================
Method                  What it bounds                                      Statement
======================  ==================================================  ====================
``bias``                |B| <= z sqrt(n_T(E)) + greatest(n_T(E)) of every   2, 3 and 8
                        event, by the rule of ``weights``
``a_priori``            decision swap regret, before anything is known      2, 3, 6, 9 and 13
``realised``            the same of who acts on what was broadcast          6, "As drawn"
``to_models``           regret to each of the reference's models            7
``contextual``          contextual swap regret to a policy                  2, of cross events
``over_window``         regret from a first to a last round                 11
``over_stay``           regret of who joins late, by what is known before   12
``event_bounds``        biases in expectation, and as drawn                 2 and 5
``draws.swap_draws``    what draws add to an expected regret                5
======================  ==================================================  ====================

The other statements are beside what they are about:

=========  =====================================================================================
Statement  Where
=========  =====================================================================================
1          ``weights`` (``REMAINDER``, ``GROWTH``), in which 2, 3 and 8 have their budgets, too
4          ``unbiased.tolerance_at`` for a round, ``unbiased.certificate_limit`` for their sum S
9          ``switch_test.SwitchTest``; how many share alpha, ``EventSet.alarms``
10         ``delayed`` and ``online.slots``; sums over turns, ``scenarios.assembly.theorems``,
           over slots, ``online.omnipredictor``
12         of stays known at both ends, ``events.stays`` and ``EventSet.over_stay``
13         ``universal.CellBound``, of which ``a_priori`` is the displayed bound
14         ``market.game.caveats``
15, 16     ``market.exploitability``
17         ``EventSet.margins``, in ``EventSet.over_stay`` and ``loss_events.Assignments``
19         ``events.coverage_events``, of ``events.quantile_grid``
=========  =====================================================================================

``tests/forecaster/test_guarantees.py`` has the formulas again, from the definitions.

**Data-dependent** bounds put what is known in the place of what is possible. The inputs
``log_start`` and ``mean_log_variation`` are known (statement 2); an event's variation C so far
stands for its occupancy, of which it is at most n_T(E): T x regret <= sum_a max_c sum_i
|r(c) - r(a)|_i beta(C_{a,i}), beta the rule's greatest bias, and sum_a max_c beta(C_{a,c}) for
scalar gains. The events know their variations: ``EventSet.from_variation`` is that bound of the
rounds so far, ``EventSet.over_stay`` that of a stay (12), both less the margins that predictions
promised (17). With second-order weights variations are
squares, so that these bounds adapt to variances (3).

**Trust.** When the games begin all biases and gains are within L(V) + 1 (``switch_test``), and the
rules say what that costs (9). As long as a reference is trusted, L(V) <= L(C) says more.

**Joining late** (12). An agent that enters before round t_0 meets the biases B_T - B_{t_0} of its
own rounds: (T - t_0) x regret <= T R(T) + t_0 R(t_0), R(t) the bound after t rounds with S_T for
S_{t_0} <= S_T, as every step is linear in the biases' absolute values. With what is known from the
moment when trust was lost, for every t <= T, on either side of it, |B_t| <= max(L(C_T), z sqrt(C_T)
+ greatest(C_T)): ``holds_throughout``. Scalar gains have one sign only: an old gain far below zero
may be regained, and nothing follows.

All bounds but ``realised`` hold in expectation over each round's draw; ``draws`` adds what the
draws do, a term that the paper's statement omits.
"""

from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.draws import RISK, swap_draws
from regretless.forecaster.guarantees.gain_bound import GainBound
from regretless.forecaster.guarantees.norms import centred_norm, gain_range, recommended_eta, spread
from regretless.forecaster.guarantees.regret_bound import RegretBound

__all__ = [
    "RISK",
    "CoordinateBound",
    "GainBound",
    "RegretBound",
    "centred_norm",
    "gain_range",
    "recommended_eta",
    "spread",
    "swap_draws",
]
