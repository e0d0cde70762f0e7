"""The models that come with the forecaster, as data that a scenario file could write."""

from collections.abc import Mapping
from typing import Any

from regretless.forecaster.models.aggregate import Aggregate
from regretless.forecaster.models.base import Model
from regretless.market import register

PANEL: dict[str, dict[str, Any]] = {
    "running-mean": {"kind": "running-mean"},
    "smoothing-0.2": {"kind": "exponential-smoothing", "rate": 0.2},
    "last-value": {"kind": "last-value"},
    "seasonal-naive": {"kind": "seasonal-naive"},
    "seasonal-0.2": {"kind": "seasonal-naive", "rate": 0.2},
    "least-squares": {"kind": "least-squares"},
    "least-squares-0.99": {"kind": "least-squares", "forgetting": 0.99},
}


def made(panel: Mapping[str, Mapping[str, Any]], size: int) -> dict[str, Model]:
    """Make the models of a panel for n = ``size`` numbers: their kinds and parameters, by name."""
    models: dict[str, Model] = {}
    for name, table in panel.items():
        parameters = {key: value for key, value in table.items() if key != "kind"}
        models[name] = register.forecaster[table["kind"]](size, **parameters)
    return models


@register.forecaster("aggregate")
def aggregate(size: int) -> Aggregate:
    """Make the aggregate of the default panel."""
    return Aggregate(made(PANEL, size), size)
