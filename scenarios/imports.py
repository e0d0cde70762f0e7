"""Importing: modules of the user, heavy libraries quickly."""

import gc
import importlib
import sys
from pathlib import Path

from regretless.market.core.errors import UserError


def import_without_collector(module: str) -> None:
    """Import one of our modules, and all that it needs, with the garbage collector switched off.

    Imported modules stay to the end of the process. The collector would walk through all of them
    while they load, during the first round and at the end, which takes a fifth of a short run's
    time. Call this before anything else is loaded, since what is loaded by then is exempt from
    collection too. If the module has been imported already, nothing is done.
    """
    if module in sys.modules:
        return
    gc.disable()
    try:
        importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()


def import_modules(names: list[str]) -> None:
    """Import a user's modules from the current directory or the path, so that they register.

    The current directory is the first on the path only while they are imported. Afterwards it is
    the last: what they import later is found, and no file there takes the place of a library that
    this project imports later, or that a worker imports, which inherits the path.
    """
    if not names:
        return
    from regretless.market.core.own_code import PROJECT  # noqa: PLC0415 - which loads NumPy

    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        _import_each(names, PROJECT)
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def _import_each(names: list[str], project: str) -> None:
    """Import modules by name; UserError for the first that cannot be."""
    for name in names:
        module = name.removesuffix(".py").removeprefix("./")
        if not all(part.isidentifier() for part in module.split(".")):
            stem = Path(name).stem
            cure = f"from its folder, write {stem}"
            if not stem.isidentifier():
                cure = "give one of letters, digits and _, as my_agents"
            raise UserError(f"--import {name}: no module's name; {cure}")
        if module == project:
            raise UserError(f"--import {name}: this project has that name; rename it")
        try:
            imported = importlib.import_module(module)
        except (UserError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise UserError(_failure_line(name, module, error)) from error
        if imported.__spec__ is not None and imported.__spec__.origin is None:
            # The folder has no __init__.py: nothing was run, and nothing is registered.
            raise UserError(
                f"--import {name}: a folder without __init__.py; name a module in it, as "
                f"{module}.my_agents"
            )


def _failure_line(name: str, module: str, error: BaseException) -> str:
    """Return the error line for a module that could not be imported."""
    if not isinstance(error, ModuleNotFoundError):
        return f"--import {name} failed: {type(error).__name__}: {error}; mend the module"
    is_the_module_itself = error.name in {module, module.partition(".")[0]}
    if is_the_module_itself:
        hint = "run from the folder of the file"
    else:
        hint = f"{module} needs it: install it or mend the import"
    return f"--import {name}: {error}; {hint}"
