"""Battles of two items."""
