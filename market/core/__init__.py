"""What all of the rest leans on: errors, randomness, checkpoints."""
