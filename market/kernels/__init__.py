"""Loops over arrays: threads, memory, compiled passes, layout, small linear programs."""
