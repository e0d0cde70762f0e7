"""``regretless fit`` and ``predict``: an offline omnipredictor from a table, and its use.

Heavy libraries are imported by the commands, as in ``cli``.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

DIGITS = "%.10g"  # of what is written: scaling to and fro leaves noise in the last ones

Columns = Annotated[str, typer.Option(metavar="A,B", help="Outcome columns, by commas.")]
Features = Annotated[
    str | None,
    typer.Option(metavar="C,D", help="Feature columns, by commas; all others if none."),
]
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
    features: Features = None,
    scale: Scales = None,
    assignments: Assignments = None,
    count: Annotated[int, typer.Option(min=1, help="Losses drawn of each utility.")] = 1,
    actions: Annotated[int, typer.Option(min=2, help="Actions of each loss.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Root seed.")] = 0,
    kappa: Annotated[float, typer.Option(help="Probability that the bound fails.")] = 0.01,
    base: Annotated[str, typer.Option(help="auto, or ridge without scikit-learn.")] = "auto",
    holdout: Annotated[
        str, typer.Option(help="Share of rows for the certificate; auto from 1,000 rows on.")
    ] = "auto",
    refit: Annotated[
        bool, typer.Option(help="Learn again from all rows once the certificate stands.")
    ] = True,
    groups: Annotated[str | None, typer.Option(help="Column whose rows stay together.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of what rows count.")] = None,
    ordered: Annotated[bool, typer.Option("--ordered", help="Rows are in time's order.")] = False,
) -> None:
    """Learn one predictor from a table for all losses of some utilities."""
    from rich.console import Console

    from regretless.scenarios.offline import Request, fit_table, share

    request = Request(
        data=data,
        outcomes=names(outcomes),
        features=None if features is None else names(features),
        utilities=utility,
        scale=scale or [],
        assignments=assignments or [],
        count=count,
        actions=actions,
        seed=seed,
        kappa=kappa,
        base=base,
        holdout=share(holdout),
        refit=refit,
        groups=groups,
        weight=weight,
        ordered=ordered,
    )
    with Console(stderr=True).status(f"Learning from {data.name} ..."):  # a terminal's alone
        lines = fit_table(request, out)
    for line in lines:
        typer.echo(line)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that fit wrote.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A table with the features.")],
    *,
    out: Annotated[Path | None, typer.Option(help="A .csv file; standard output if none.")] = None,
    levels: Annotated[
        str, typer.Option(metavar="Q,R", help="Of the outcomes' quantiles.")
    ] = "0.1,0.5,0.9",
    laws: Annotated[bool, typer.Option("--laws", help="Every action's probability, too.")] = False,
) -> None:
    """Predict new rows: the outcomes' forecast, and an action for every fitted loss."""
    from regretless.scenarios.offline import predict_table, shares, write_text

    table, told = predict_table(model, new, shares(levels), laws=laws)
    for line in told:
        typer.echo(line, err=True)
    text = table.to_csv(index=False, float_format=DIGITS)
    if out is None:
        sys.stdout.write(text)
        return
    write_text(out, text)
    typer.echo(f"written: {out}")


def names(text: str) -> list[str]:
    """Split a list at its commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
