"""Many agents of one kind as arrays: who responds, who scripts, who learns, and what they hear."""
