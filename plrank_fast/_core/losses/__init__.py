"""Losses of scores, given labels."""
