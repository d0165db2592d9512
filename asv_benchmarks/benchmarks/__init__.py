"""Benchmarks of plrank_fast, for airspeed velocity (``make bench``)."""
