"""Gradients of expected metrics: estimators of sampled rankings, and those without sampling."""
