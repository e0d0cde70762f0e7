"""Studies: a base scenario swept over parameters and seeds, in many processes, and read back."""

from regretless.scenarios.studies.results import Study, load_study

__all__ = ["Study", "load_study"]
