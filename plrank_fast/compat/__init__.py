"""Interfaces of other code, implemented with this library."""
