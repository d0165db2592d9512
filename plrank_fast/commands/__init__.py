"""The commands of ``python -m plrank_fast``, each in a module of its name, and the `options` that they share."""
