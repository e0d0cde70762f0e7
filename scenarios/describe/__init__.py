"""What is in a user's table, and a starter scenario that plays it."""
