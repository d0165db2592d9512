"""Gradients of expected metrics: estimators from sampled rankings, and methods without sampling."""
