"""One query's weights and rankings: what is left at each rank, the deterministic ranking, its metrics."""
