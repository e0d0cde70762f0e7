"""The rules of the game and its measures; this package imports none of the other three.

What scripts use stands here, module by module:

    model           ``MarketModel``, a ``mesa.Model``
    register        decorators that make a name of your own agent, adversary, utility, policy ...
    losses          the forms that losses take, vectorised over agents, actions and rounds
    records         what travels in a round: contexts, forecasts, outcome distributions, decisions
    regret          every regret of one agent, from a raw log
    exploitability  exploitability, commitment values, their caps, and the distance to equilibria
    calibration     decision and cross calibration errors
    response        best and quantal response, the kernel that agents and forecaster share

``game`` holds the round and its roles, ``logs`` what a model writes down, ``core`` and ``numerics``
what all of it uses.
"""
