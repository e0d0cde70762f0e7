"""An offline omnipredictor from a table on disk, as the command line asks for it.

The losses are drawn as a scenario's cohorts are. The certificate's assumption, independent rows, is
the user's to judge: ``--groups``, ``--weight`` and ``--ordered`` say that it does not hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from regretless.forecaster import OfflineOmnipredictor
from regretless.forecaster.omniprediction.storage import readable
from regretless.forecaster.omniprediction.suggestions import ends_of
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.atomic import replacing
from regretless.market.core.errors import UserError, closest
from regretless.market.losses import Loss
from regretless.scenarios.build.populations import drawn_losses
from regretless.scenarios.features import (
    Feature,
    feature_from,
    feature_of,
    in_order_of,
    learnable,
    strange,
    table,
)
from regretless.scenarios.frames import numeric, read_frame
from regretless.scenarios.spec.cohort import CohortSpec
from regretless.scenarios.spec.files import override

FEWEST = 10  # rows


@dataclass(frozen=True)
class Request:
    """What the options of ``fit`` say.

    Parameters
    ----------
    features : list of str or None
        None for all other columns that can be learned from.
    scale, assignments : list of str
        ``A=LOW:HIGH`` and ``UTILITY.KEY=VALUE``.
    groups, weight : str or None
        Columns.
    ordered : bool
        Whether rows are in the order of time.
    """

    data: Path
    outcomes: list[str]
    features: list[str] | None
    utilities: list[str]
    scale: list[str]
    assignments: list[str]
    count: int
    actions: int
    seed: int
    kappa: float
    base: str
    holdout: Any
    refit: bool
    groups: str | None
    weight: str | None
    ordered: bool


def fit_table(request: Request, out: Path) -> list[str]:
    """Fit a model and write it; return what to tell, line by line.

    UserError if the table, a column, a scale or a parameter does not fit.
    """
    _check(request, out)
    frame = _frame(request.data)
    if len(frame) < FEWEST:
        raise UserError(f"{request.data}: {len(frame)} rows; give at least {FEWEST}")
    outcomes = numeric(frame, request.outcomes, "--outcomes")
    ends, clipped = scales(request.scale, request.outcomes, outcomes)
    features, left = chosen_features(frame, request)
    model = OfflineOmnipredictor(
        requested_losses(request),
        kappa=request.kappa,
        random_state=request.seed,
        base=request.base,
        holdout=request.holdout,
        refit=request.refit,
        ends=ends,
        **({"cv": _in_time()} if request.ordered else {}),
    )
    model.fit(
        table(frame, features, "--features"),
        outcomes,
        None if request.weight is None else numeric(frame, [request.weight], "--weight")[:, 0],
        groups=None if request.groups is None else _column(frame, request.groups, "--groups"),
    )
    notes = {
        "outcomes": request.outcomes,
        "features": [own.note() for own in features],
        "utilities": request.utilities,
    }
    model.save(out, notes=notes)
    lines = _told(model, request, features)
    if left:
        lines.append(
            f"left out (all the same, too many words, no numbers, or no name): {', '.join(left)}"
        )
    if not request.ordered and (column := in_order_of(frame, features)) is not None:
        lines.append(f"rows are in the order of {column}: --ordered tries it on later rows alone")
    if clipped:
        lines.append(f"{clipped:.1%} of the rows had an outcome outside of its scale: clipped")
    return [*lines, f"written: {out}"]


def _in_time() -> Any:
    try:
        from sklearn.model_selection import TimeSeriesSplit  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise UserError("--ordered needs scikit-learn; install regretless[learn]") from error
    return TimeSeriesSplit(5)


def _column(frame: pd.DataFrame, name: str, option: str) -> Any:
    if name not in frame:
        raise UserError(
            f"{option} {name}: no such column; {closest(name, [str(c) for c in frame])}"
        )
    return frame[name].to_numpy()


def chosen_features(frame: pd.DataFrame, request: Request) -> tuple[list[Feature], list[str]]:
    """Return the features, by default all columns that can be learned from; and what is left."""
    if request.features is not None:
        return [feature_of(frame, name, "--features") for name in request.features], []
    return learnable(frame, [*request.outcomes, request.groups, request.weight])


def _check(request: Request, out: Path) -> None:
    if not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder '{out.parent}'; make it first")
    if request.base == "none":
        raise UserError("--base none: it needs policies, which Python gives; choose auto or ridge")
    if not request.outcomes:
        raise UserError("--outcomes: name at least one column, such as --outcomes demand")
    for name in request.features or []:
        if name in request.outcomes:
            raise UserError(f"--features: '{name}' is an outcome too; leave it out of one of them")


def _told(model: OfflineOmnipredictor, request: Request, features: Sequence[Feature]) -> list[str]:
    held = 0 if model.held_ is None else len(model.held_.outcomes)
    fitted: Any = model.fitted_
    law = zip(fitted.law.members, fitted.law.shares, strict=True)
    listed = ", ".join(f"{name} {share:.0%}" for name, share in law)
    ends = zip(request.outcomes, model.ends_, strict=True)
    scale = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in ends)
    certified, learned = model.certified_on_holdout_, fitted.rounds
    if certified is None:
        told = "none (no rows were held out; --holdout 0.3 holds out that share)"
    else:
        learned = model.certified_fit_.rounds
        told = (
            f"{certified:.4f}: decision swap regret of the worst loss on new rows is at most that "
            f"with probability {1 - request.kappa:g}, if rows are independent"
        )
        if model.certified_fit_ is not fitted:
            told += f"; it is about the law of the {learned} rows, the one written knows all"
    losses = "loss" if fitted.listed.count == 1 else "losses"
    seen = f"features: {', '.join(map(str, features)) or 'none'}"
    return [
        f"{learned} rows learned from, {held} held out; {seen}",
        f"{fitted.listed.count} {losses} on outcomes scaled from {scale}; law: {listed}",
        f"certified_on_holdout: {told}",
    ]


def predict_table(
    model_file: Path, new: Path, levels: Sequence[float], *, laws: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """Predict the rows of a table: forecasts in the file's units, all losses' actions.

    Returns
    -------
    DataFrame
    list of str
        What to tell: words that the model never learned.
    """
    model = OfflineOmnipredictor.load(model_file)
    notes = model.notes_
    if not {"outcomes", "features", "utilities"} <= set(notes):
        raise UserError(f"'{model_file}' was not written by regretless fit; use Python to load it")
    frame = _frame(new)
    with readable(model_file):
        features = [feature_from(note) for note in notes["features"]]
        rows = table(frame, features, "features of the model")
        names = {"outcomes": notes["outcomes"], "losses": notes["utilities"]}
        found = model.predict_frame(rows, levels=levels, laws=laws, names=names)
    return found, strange(frame, features)


def _frame(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise UserError(f"'{path}' does not exist; give the path of a .csv or .parquet file")
    frame = read_frame(path, f"'{path}'")
    return frame.rename(columns=lambda name: str(name).strip())  # as names are read from options


def scales(texts: Sequence[str], names: Sequence[str], outcomes: Array) -> tuple[Array, float]:
    """Parse ``A=LOW:HIGH``: what becomes 0 and 1 (d, 2), and the share of rows beyond.

    A column without a scale is in [0, 1] as it stands, or goes from its least to its greatest.
    """
    for name, column in zip(names, outcomes.T, strict=True):
        if column.min() == column.max():
            raise UserError(f"--outcomes: '{name}' is {column[0]:g} in every row; leave it out")
    found = ends_of(None, outcomes)
    for text in texts:
        name, _, ends = text.partition("=")
        if name not in names:
            raise UserError(f"--scale {text}: '{name}' is no outcome; {closest(name, names)}")
        try:
            low, high = (float(end) for end in ends.split(":"))
        except ValueError:
            raise UserError(f"--scale {text}: write COLUMN=LOW:HIGH, such as rain=0:30") from None
        if low == high or not np.isfinite([low, high]).all():
            raise UserError(f"--scale {text}: give two different numbers, such as {name}=0:30")
        found[list(names).index(name)] = low, high
    beyond = (outcomes < found.min(1)) | (outcomes > found.max(1))
    return found, float(beyond.any(1).mean())


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
        own = {"name": name, "utility": name, "parameters": parameters.get(name, {})}
        try:
            spec = CohortSpec(**own, count=request.count, actions=request.actions)
        except ValidationError as error:
            raise UserError(f"--set {name}: write {name}.KEY=VALUE, such as ces.rho=0.5") from error
        try:
            found.append(drawn_losses(spec, request.seed, len(request.outcomes)))
        except UserError as error:
            told = str(error).replace(f"cohort.{name}.parameters of utility '{name}'", name)
            told = told.replace(f"cohort.{name}.parameters", f"--set {name}")
            raise UserError(f"{told}; set it as --set {name}.KEY=VALUE") from error
    return found


def shares(text: str) -> list[float]:
    """Read ``--levels``."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UserError(f"--levels {text}: give numbers by commas, such as 0.1,0.5,0.9") from None


def share(text: str) -> float | str:
    """Read ``--holdout``."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise UserError(f"--holdout {text}: give a share such as 0.3, or auto") from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; UserError where it cannot be written."""
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {path}: {error.strerror}; give a file to write") from error
