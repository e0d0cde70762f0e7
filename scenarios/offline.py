"""An offline omnipredictor from a table on disk, as the command line asks for it.

The losses are drawn as a scenario's cohorts are. The policies are thresholds on the features at
the given quantiles, with the two actions that lose least for each loss; they are chosen on a fifth
of the rows, drawn at random, and the predictor is fitted to the others, so that the bound's
assumption on policies holds. Its other assumption, independent rows, is the user's to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError

from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.omniprediction import thresholds
from regretless.forecaster.omniprediction.policies import tables_of
from regretless.forecaster.omniprediction.storage import readable
from regretless.market import register
from regretless.market.core.atomic import replacing
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.scenarios.build.populations import drawn_losses
from regretless.scenarios.frames import numeric, read_frame
from regretless.scenarios.spec.cohort import CohortSpec
from regretless.scenarios.spec.files import override

Array = NDArray[np.float64]

CHOOSING = 0.2  # share of the rows on which policies are chosen
FEWEST = 10  # rows


@dataclass(frozen=True)
class Request:
    """What the options of ``fit`` say.

    Parameters
    ----------
    scale, assignments : list of str
        ``A=LOW:HIGH`` and ``UTILITY.KEY=VALUE``.
    """

    data: Path
    outcomes: list[str]
    features: list[str]
    utilities: list[str]
    scale: list[str]
    assignments: list[str]
    count: int
    actions: int
    quantiles: list[str]
    seed: int
    rounds_kept: int
    kappa: float
    events: Any


def fit_table(request: Request, out: Path) -> list[str]:
    """Fit a model and write it; return what to tell, line by line.

    UserError if the table, a column, a scale or a parameter does not fit.
    """
    _check(request, out)
    frame = _frame(request.data)
    ends = scales(request.scale, request.outcomes)
    outcomes, clipped = scaled(frame, request.outcomes, ends)
    features = varying(frame, request.features)
    if len(frame) < FEWEST:
        raise UserError(f"{request.data}: {len(frame)} rows; give at least {FEWEST}")
    losses = requested_losses(request)
    choosing = choosing_rows(len(frame), request.seed)
    cuts = [quantile(text) for text in request.quantiles]
    rules = thresholds(features[choosing], tables_of(losses, outcomes[choosing]), cuts)
    model = OfflineOmnipredictor(
        losses,
        rules,
        events=request.events,
        kappa=request.kappa,
        rounds_kept=request.rounds_kept,
        random_state=request.seed,
    )
    model.fit(features[~choosing], outcomes[~choosing])
    notes: dict[str, Any] = {
        "outcomes": request.outcomes,
        "features": request.features,
        "ends": [list(ends[name]) for name in request.outcomes],
        "utilities": request.utilities,
    }
    model.save(out, notes=notes)
    lines = _told(model, request, int(choosing.sum()))
    if clipped:
        lines.append(f"{clipped:.1%} of the rows had an outcome outside of its scale: clipped")
    return [*lines, f"written: {out}"]


def _check(request: Request, out: Path) -> None:
    if not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder '{out.parent}'; make it first")
    if not request.outcomes:
        raise UserError("--outcomes: name at least one column, such as --outcomes demand")
    for name in request.features:
        if name in request.outcomes:
            raise UserError(f"--features: '{name}' is an outcome too; leave it out of one of them")


def _told(model: OfflineOmnipredictor, request: Request, choosing: int) -> list[str]:
    online = max(float(own.regret("decision_swap").max()) for own in model.fitted_.online)
    lines = [
        (
            f"{model.fitted_.rounds} rows fitted, {choosing} used to choose "
            f"{len(model.policies)} policies; {model.fitted_.listed.count} losses in "
            f"{model.basis_.size} functions"
        ),
        (
            f"decision swap regret, worst loss: {online:.4f} on the fitted rows; on new rows at "
            f"most {model.bound_:.4f} with probability {1 - request.kappa:g}, if rows are "
            "independent"
        ),
    ]
    seen = {request.features[rule.column] for rule in model.policies}
    unseen = [name for name in request.features if name not in seen]
    if unseen:
        told = f"no policy looks at {', '.join(unseen)}: by itself it changes no best action"
        lines.append(f"{told}; with more --actions than {request.actions} it may")
    return lines


def predict_table(model_file: Path, new: Path) -> pd.DataFrame:
    """Predict the rows of a table: forecasts in the file's units, drawn actions of all losses."""
    model = OfflineOmnipredictor.load(model_file)
    notes = model.notes_
    if not {"outcomes", "features", "ends", "utilities"} <= set(notes):
        raise UserError(f"'{model_file}' was not written by regretless fit; use Python to load it")
    frame = _frame(new)
    with readable(model_file):
        return _predicted(model, frame)


def _predicted(model: OfflineOmnipredictor, frame: pd.DataFrame) -> pd.DataFrame:
    """Predict the rows of a frame by a model and what it notes of its table."""
    notes = model.notes_
    features = numeric(frame, notes["features"], "features of the model")
    forecast, ends = model.predict_outcome(features), np.array(notes["ends"])
    columns = {
        name: ends[j, 0] + forecast[:, j] * (ends[j, 1] - ends[j, 0])
        for j, name in enumerate(notes["outcomes"])
    }
    stacks: Any = model.losses
    for name, stack in zip(notes["utilities"], stacks, strict=True):
        for k in range(len(stack)):
            columns[f"{name}_{k}_action"] = model.act(stack[k], features)
    return pd.DataFrame(columns)


def _frame(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise UserError(f"'{path}' does not exist; give the path of a .csv or .parquet file")
    return read_frame(path, f"'{path}'")


def scales(texts: Sequence[str], outcomes: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Parse ``A=LOW:HIGH``; columns without a scale are in [0, 1] as they stand."""
    found = dict.fromkeys(outcomes, (0.0, 1.0))
    for text in texts:
        name, _, ends = text.partition("=")
        if name not in found:
            raise UserError(f"--scale {text}: '{name}' is no outcome; {closest(name, outcomes)}")
        try:
            low, high = (float(end) for end in ends.split(":"))
        except ValueError:
            raise UserError(f"--scale {text}: write COLUMN=LOW:HIGH, such as rain=0:30") from None
        if low == high or not np.isfinite([low, high]).all():
            raise UserError(f"--scale {text}: give two different numbers, such as {name}=0:30")
        found[name] = low, high
    return found


def scaled(
    frame: pd.DataFrame, columns: list[str], ends: dict[str, tuple[float, float]]
) -> tuple[Array, float]:
    """Scale outcomes into [0, 1] and clip those with a scale; also the share of clipped rows."""
    raw = numeric(frame, columns, "--outcomes")
    table = np.empty_like(raw)
    for j, name in enumerate(columns):
        low, high = ends[name]
        table[:, j] = (raw[:, j] - low) / (high - low)
        least, most = raw[:, j].min(), raw[:, j].max()
        if least == most:
            raise UserError(f"--outcomes: '{name}' is {least:g} in every row; leave it out")
        if ends[name] == (0.0, 1.0) and (least < 0 or most > 1):
            raise UserError(
                f"--outcomes: '{name}' runs from {least:g} to {most:g}, outside [0, 1]; "
                f"add --scale {name}={least:g}:{most:g}"
            )
    outside = ((table < 0) | (table > 1)).any(1)
    return np.clip(table, 0.0, 1.0), float(outside.mean())


def varying(frame: pd.DataFrame, columns: list[str]) -> Array:
    """Return features (m, f); UserError where one is the same in every row."""
    table = numeric(frame, columns, "--features")
    for j, name in enumerate(columns):
        if (table[:, j] == table[0, j]).all():
            raise UserError(f"--features: '{name}' is {table[0, j]:g} in every row; leave it out")
    return table


def requested_losses(request: Request) -> list[Loss]:
    """Draw the losses of every utility that was asked for, as cohorts of a scenario."""
    parameters: dict[str, Any] = override({}, request.assignments)
    for name in parameters:
        if name not in request.utilities:
            cure = closest(name, request.utilities)
            raise UserError(f"--set {name}: no such utility was asked for; {cure}")
    found = []
    for name in request.utilities:
        if request.utilities.count(name) > 1:
            raise UserError(f"--utility {name} is given twice; use --count for several losses")
        register.utility[name]  # known, or the user is told
        table = {"name": name, "utility": name, "parameters": parameters.get(name, {})}
        try:
            spec = CohortSpec(**table, count=request.count, actions=request.actions)
        except ValidationError as error:
            raise UserError(f"--set {name}: write {name}.KEY=VALUE, such as ces.rho=0.5") from error
        try:
            found.append(drawn_losses(spec, request.seed, len(request.outcomes)))
        except UserError as error:
            told = str(error).replace(f"cohort.{name}.parameters of utility '{name}'", name)
            told = told.replace(f"cohort.{name}.parameters", f"--set {name}")
            raise UserError(f"{told}; set it as --set {name}.KEY=VALUE") from error
    return found


def choosing_rows(rows: int, seed: int) -> NDArray[np.bool_]:
    """Mark the rows on which policies are chosen."""
    chosen = np.zeros(rows, dtype=bool)
    count = max(1, round(CHOOSING * rows))
    chosen[stream(seed, "fit", "choosing").choice(rows, count, replace=False)] = True
    return chosen


def quantile(text: str) -> float:
    """Read one number of ``--quantiles``."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 < value < 1:
        raise UserError(f"--quantiles {text}: give numbers between 0 and 1, such as 0.25,0.5,0.75")
    return value


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; UserError where it cannot be written."""
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {path}: {error.strerror}; give a file to write") from error
