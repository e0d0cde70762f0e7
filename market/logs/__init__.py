"""What a model writes down: journal, windows, welfare, and the tables that close a run."""

from regretless.market.logs.comparisons import gains, policy_regret
from regretless.market.logs.welfare import cohort_welfare

__all__ = ["cohort_welfare", "gains", "policy_regret"]
