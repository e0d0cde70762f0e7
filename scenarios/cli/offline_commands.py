"""``regretless fit`` and ``predict``: an offline omnipredictor from a table, and its use.

Heavy libraries are imported by the commands, as in ``cli``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

Columns = Annotated[str, typer.Option(metavar="A,B", help="Outcome columns, by commas.")]
Features = Annotated[str, typer.Option(metavar="C,D", help="Feature columns, by commas.")]
Utilities = Annotated[
    list[str], typer.Option("--utility", metavar="NAME", help="Whom to serve; repeatable.")
]
Scales = Annotated[
    list[str] | None,
    typer.Option("--scale", metavar="A=LOW:HIGH", help="Ends that become 0 and 1; repeatable."),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="UTILITY.KEY=VALUE", help="A utility's parameter; repeatable."),
]


def fit(  # noqa: PLR0913 - one parameter per option
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A .csv or .parquet file.")],
    *,
    outcomes: Columns,
    utility: Utilities,
    out: Annotated[Path, typer.Option(help="The model's file, such as model.npz.")],
    features: Features = "",
    scale: Scales = None,
    assignments: Assignments = None,
    count: Annotated[int, typer.Option(min=1, help="Losses drawn of each utility.")] = 1,
    actions: Annotated[int, typer.Option(min=2, help="Actions of each loss.")] = 5,
    quantiles: Annotated[
        str, typer.Option(metavar="Q,R", help="Where features are cut for the policies.")
    ] = "0.5",
    seed: Annotated[int, typer.Option(min=0, help="Root seed.")] = 0,
    rounds_kept: Annotated[int, typer.Option(min=1, help="Predictors in the mixture.")] = 200,
    kappa: Annotated[float, typer.Option(help="Probability that the bound fails.")] = 0.01,
    events: Annotated[str, typer.Option(help="coordinates, or losses.")] = "coordinates",
) -> None:
    """Learn one predictor from a table for all losses of some utilities."""
    from regretless.scenarios.offline import Request, fit_table

    request = Request(
        data=data,
        outcomes=names(outcomes),
        features=names(features),
        utilities=utility,
        scale=scale or [],
        assignments=assignments or [],
        count=count,
        actions=actions,
        quantiles=names(quantiles),
        seed=seed,
        rounds_kept=rounds_kept,
        kappa=kappa,
        events=events,
    )
    for line in fit_table(request, out):
        typer.echo(line)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that fit wrote.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A table with the features.")],
    *,
    out: Annotated[Path | None, typer.Option(help="A .csv file; standard output if none.")] = None,
) -> None:
    """Predict new rows: the outcomes' forecast, and an action for every fitted loss."""
    from regretless.scenarios.offline import predict_table, write_text

    text = predict_table(model, new).to_csv(index=False)
    if out is None:
        sys.stdout.write(text)
        return
    write_text(out, text)
    typer.echo(f"written: {out}")


def names(text: str) -> list[str]:
    """Split a list at its commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
