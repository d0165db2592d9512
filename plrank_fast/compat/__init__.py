"""Interfaces of other people's code, computed by this library."""
