"""The peers: packages that do the same work, imported only where one is timed."""

import importlib
import warnings
from typing import Any

PACKAGES = {  # by what is imported
    "pyspiel": "open_spiel",
    "open_spiel": "open_spiel",
    "cvxpy": "cvxpy",
    "noregret": "noregret",
    "sklearn": "scikit-learn",
}
EXTRAS = {"scikit-learn": "learn"}  # that bring a package which `peers` does not


class MissingPeerError(ImportError):
    """A peer's package is not installed; ``name`` is the package."""


def peer(module: str) -> Any:
    """Import a peer's module.

    Raises
    ------
    MissingPeerError
        If a peer's package is not installed. Any other failure is raised as it is.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peer's, about its own code
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = PACKAGES.get((error.name or "").split(".")[0])
        if package is None:
            raise
        raise MissingPeerError(f"{package} is not installed", name=package) from error
