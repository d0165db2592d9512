"""The commands of ``python -m plrank_fast``, one per file; importing one loads neither PyTorch nor matplotlib."""
