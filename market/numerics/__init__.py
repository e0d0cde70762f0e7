"""Threads, large tables, order-independent sums, small linear programs."""
