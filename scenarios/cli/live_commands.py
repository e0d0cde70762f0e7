"""The command that serves the live page."""

from pathlib import Path
from typing import Annotated

import typer

from regretless.scenarios.cli.options import Assignments, Imports
from regretless.scenarios.imports import import_for_good, import_modules


def dashboard(
    scenario: Annotated[
        str,
        typer.Argument(metavar="[SCENARIO|FILE.toml]", help="Name of a bundled one, or a file."),
    ] = "crop-choice",
    *,
    assignments: Assignments = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")] = 8642,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    imports: Imports = None,
) -> None:
    """Play a scenario live in the browser. Ctrl-C ends it."""
    import_for_good("regretless.scenarios.live.server")
    import webbrowser

    from regretless.scenarios.live.server import Live, Viewers
    from regretless.scenarios.live.source import Source

    import_modules(imports or [])
    source = Source.of(scenario, tuple(assignments or ()))
    source.scenario().build()  # so that what is wrong is said here, and not on the page
    viewers = Viewers(source, Path.cwd(), tuple(imports or ()))
    with Live(viewers, port) as server:
        typer.echo(f"Live page: {server.address} (Ctrl-C ends it)")
        if not no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("Ended.")
        finally:
            viewers.end()
