"""Weights and rankings of one query: weights left at each rank, the deterministic ranking, its metrics."""
