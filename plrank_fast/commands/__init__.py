"""The commands of ``python -m plrank_fast``, one a file; importing one loads neither PyTorch nor matplotlib."""
