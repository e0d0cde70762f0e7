"""``python -m regretless`` is the command."""

from __future__ import annotations

from regretless.scenarios.cli.commands import main

if __name__ == "__main__":
    main()
