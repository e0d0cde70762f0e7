"""One page of a run or a study, and its figures."""
