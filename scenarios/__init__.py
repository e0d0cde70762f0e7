"""Scenario files, runs, logs, figures and the command line.

``load`` gives a scenario, ``run.run`` plays one into a directory that ``logs.reading.read_run``
reads back, ``studies.Study`` reads a study, ``report.write.write_report`` draws either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regretless.market.model import MarketModel
    from regretless.scenarios.assembly.scenario import Scenario
    from regretless.scenarios.config.scenario import ScenarioSpec

__all__ = ["load"]


def load(name: str, **settings: Any) -> Scenario:
    """Load a scenario by its catalogue name or from a TOML file.

    Parameters
    ----------
    name : str
        A name that ``regretless list`` prints, or a path ending in ``.toml``.
    **settings
        Keys to replace: of the top level, such as ``rounds=2000``, or dotted as on the command
        line, ``**{"cohort.growers.count": 3}``.

    Returns
    -------
    Scenario
        ``.build(seed=...)`` gives a ``market.model.MarketModel``.

    Raises
    ------
    market.core.errors.UserError
        If the scenario is unknown or does not validate.
    """
    from regretless.scenarios.assembly.scenario import Scenario
    from regretless.scenarios.config.files import assign, find, read
    from regretless.scenarios.config.validation import validated

    path = find(name)
    raw = read(path)
    for key, value in settings.items():
        assign(raw, key, value, asked_for=settings)
    return Scenario(validated(raw, origin=path.parent), drawer=_draw)


def _draw(spec: ScenarioSpec, model: MarketModel, figure: str | None) -> Any:
    """Draw a model's figures; what draws is loaded when it is first asked for."""
    from regretless.scenarios.config.validation import resolved
    from regretless.scenarios.show import show

    return show(resolved(spec), model, figure)
