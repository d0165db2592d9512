"""Private: what adapters to other libraries share."""
