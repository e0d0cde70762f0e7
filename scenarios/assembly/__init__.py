"""From a validated specification to a playable market."""
