"""Private helpers that know nothing of rankings."""
