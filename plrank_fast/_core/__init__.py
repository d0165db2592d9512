"""The compiled core: private, below every Python module of the package, in the reading order of its map."""
