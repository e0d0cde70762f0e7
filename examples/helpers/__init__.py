"""What all examples need: means with intervals, figures, and agents that one of them adds."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY))  # for ``paper``, which is not installed
