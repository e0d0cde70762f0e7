"""What a model writes down: journal, windows, welfare, and the tables that close a run."""

from regretless.market.logs.branch_gains import gains, policy_regret
from regretless.market.logs.welfare import by_distance, cohort_welfare

__all__ = ["by_distance", "cohort_welfare", "gains", "policy_regret"]
