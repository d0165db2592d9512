"""Counter-keyed random streams, and selection of the smallest keys."""
