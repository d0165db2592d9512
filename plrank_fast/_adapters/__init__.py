"""Private: what the adapters to PyTorch and JAX share."""
