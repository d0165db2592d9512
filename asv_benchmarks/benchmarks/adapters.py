"""The losses of the adapters, where PyTorch and JAX are installed."""

from importlib.util import find_spec

import numpy as np

from .workloads import batch


class Steps:
    """Loss and gradient of rows at K = 10, beside the library's own softmax cross-entropy."""

    params = (["torch", "jax"], ["exact", "cmc", "softmax"], [24, 25_600])
    param_names = ("library", "loss", "n_docs")

    def setup(self, library, loss, n_docs):
        if find_spec(library) is None:
            raise NotImplementedError(f"{library} is not installed")
        scores, relevance, _ = batch([n_docs])
        rows = (1, 24) if n_docs == 24 else (256, 100)
        scores, labels = scores.reshape(rows).astype(np.float32), np.log2(relevance + 1).reshape(rows)
        shares = (labels / labels.sum(axis=1, keepdims=True)).astype(np.float32)
        self.step = getattr(self, library)(loss, scores, labels, shares)
        self.step()

    def torch(self, loss, scores, labels, shares):
        import torch

        from plrank_fast.torch import ExpectedMetricLoss

        leaf, target = torch.tensor(scores, requires_grad=True), torch.tensor(shares if loss == "softmax" else labels)
        own = torch.nn.functional.cross_entropy if loss == "softmax" else ExpectedMetricLoss(method=loss)

        def step():
            leaf.grad = None
            own(leaf, target).backward()

        return step

    def jax(self, loss, scores, labels, shares):
        import jax

        from plrank_fast.jax import expected_metric_loss

        def own(scores):
            if loss == "softmax":
                return -(jax.nn.log_softmax(scores) * shares).sum(axis=1).mean()
            return expected_metric_loss(scores, labels, method=loss)

        compiled = jax.jit(jax.value_and_grad(own))
        return lambda: jax.block_until_ready(compiled(scores))

    def time_step(self, library, loss, n_docs):
        self.step()
