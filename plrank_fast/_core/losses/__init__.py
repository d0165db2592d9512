"""Losses of given labels."""
