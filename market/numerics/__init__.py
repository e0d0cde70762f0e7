"""Large tables, order-independent sums, small linear programs."""
