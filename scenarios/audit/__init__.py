"""Audits of decisions that somebody else made; full logs have the loss of every alternative."""

from regretless.scenarios.audit.full_logs import Audit, audit, print_audit, write_audit

__all__ = ["Audit", "audit", "print_audit", "write_audit"]
