"""Private helpers of several modules; the map in ``plrank_fast/_core/__init__.py`` has their order."""
