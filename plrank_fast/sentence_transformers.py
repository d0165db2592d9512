"""The losses of ``plrank_fast.torch`` for training a ``CrossEncoder`` of sentence-transformers on lists of documents.

``CrossEncoderTrainer`` takes a `RankingLoss` as one of its own::

    loss = RankingLoss(model, "list_mle", mini_batch_size=32)
    CrossEncoderTrainer(model=model, args=args, train_dataset=dataset, loss=loss).train()

The columns of the data set are the query, a list of documents, and ``labels``, a list of their grades.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from plrank_fast import torch as adapters
from plrank_fast import validation
from plrank_fast._shared.extras import import_extra

if TYPE_CHECKING:
    import torch
else:
    torch = import_extra("torch", "torch")
RandContext: Any = import_extra("sentence_transformers.base.losses.gradcache", "sentence-transformers").RandContext

__all__ = ["RankingLoss"]


def __dir__() -> list[str]:
    return __all__


LOSSES: dict[str, type[Any]] = {
    "expected_metric": adapters.ExpectedMetricLoss,
    **{each.loss: each for each in (getattr(adapters, name) for name in adapters.__all__) if hasattr(each, "loss")},
}
XIA = (
    "xia2008listwise", "Xia, Fen and Liu, Tie-Yan and Wang, Jue and Zhang, Wensheng and Li, Hang",
    "Listwise Approach to Learning to Rank: Theory and Algorithm", "ICML", 2008,
)  # fmt: skip
SOURCES: dict[str, tuple[str, str, str, str, int]] = {
    "expected_metric": (
        "oosterhuis2021computationally", "Oosterhuis, Harrie",
        "Computationally Efficient Optimization of Plackett-Luce Ranking Models for Relevance and Fairness",
        "SIGIR", 2021,
    ),
    "pointwise": (
        "cossock2006subset", "Cossock, David and Zhang, Tong", "Subset Ranking Using Regression", "COLT", 2006,
    ),
    "softmax_cross_entropy": (
        "bruch2019analysis", "Bruch, Sebastian and Wang, Xuanhui and Bendersky, Michael and Najork, Marc",
        "An Analysis of the Softmax Cross Entropy Loss for Learning-to-Rank with Binary Relevance", "ICTIR", 2019,
    ),
    "list_mle": XIA,
    "plackett_luce": XIA,
    "pairwise_logistic": (
        "burges2005learning",
        "Burges, Chris and Shaked, Tal and Renshaw, Erin and Lazier, Ari and Deeds, Matt and Hamilton, Nicole "
        "and Hullender, Greg",
        "Learning to Rank Using Gradient Descent", "ICML", 2005,
    ),
    "lambda_rank": (
        "burges2006learning", "Burges, Christopher J. C. and Ragno, Robert and Le, Quoc V.",
        "Learning to Rank with Nonsmooth Cost Functions", "NIPS", 2006,
    ),
    "lambda_loss": (
        "wang2018lambdaloss",
        "Wang, Xuanhui and Li, Cheng and Golbandi, Nadav and Bendersky, Michael and Najork, Marc",
        "The LambdaLoss Framework for Ranking Metric Optimization", "CIKM", 2018,
    ),
    "approx_ndcg": (
        "qin2010general", "Qin, Tao and Liu, Tie-Yan and Li, Hang",
        "A General Approximation Framework for Direct Optimization of Information Retrieval Measures",
        "Information Retrieval", 2010,
    ),
    "soft_rank": (
        "taylor2008softrank", "Taylor, Michael and Guiver, John and Robertson, Stephen and Minka, Tom",
        "SoftRank: Optimizing Non-Smooth Rank Metrics", "WSDM", 2008,
    ),
}  # fmt: skip


class RankingLoss(torch.nn.Module):  # type: ignore[misc]
    """Loss of lists of documents for ``CrossEncoderTrainer``.

    Parameters
    ----------
    model : CrossEncoder
        The model to train, with one label.
    loss : str or Module
        "expected_metric", minus the expected NDCG@10; another name that ``plrank_fast.torch.ranking_loss`` takes; or a
        loss module of ``plrank_fast.torch``.
    mini_batch_size : int, optional
        Pairs of query and document that pass through the model at once. All but the last mini-batch pass twice, once
        without and once with a graph, so that one graph is kept at a time; the gradient is that of the whole batch,
        with dropout too. By default all pairs at once.
    **options
        Options of the loss of that name, such as ``cutoff``.

    Notes
    -----
    Lists may differ in length, and the labels' scale is that of the loss. In several processes each computes the mean
    over its own queries. The loss is computed on the CPU, from scores of float32.

    Examples
    --------
    ::

        model = CrossEncoder("microsoft/mpnet-base", num_labels=1)
        dataset = Dataset.from_dict({
            "query": ["pandas", "capital of France"],
            "documents": [["Pandas are bears.", "Fish swim."], ["Paris", "Lyon", "A city in France"]],
            "labels": [[2, 0], [2, 0, 1]],
        })
        loss = RankingLoss(model, mini_batch_size=32)
        CrossEncoderTrainer(model=model, train_dataset=dataset, loss=loss).train()
    """

    model: Any
    loss: Any
    mini_batch_size: int | None

    @validation.hinted
    def __init__(
        self,
        model: Any,
        loss: Literal["expected_metric"] | validation.RankingLossName | torch.nn.Module = "expected_metric",
        *,
        mini_batch_size: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        labels = getattr(model, "num_labels", 1)
        validation.require(labels == 1, f"model must have one label, got {labels}: pass num_labels=1 to CrossEncoder")
        module: Any = loss
        if not isinstance(loss, tuple(LOSSES.values())):
            module = LOSSES[validation.choice(loss, "loss", tuple(LOSSES))](**options)
        else:
            validation.require(not options, f"a loss module has its own options, got {', '.join(options)}", TypeError)
        validation.require(
            module.reduction != "none", "reduction must be 'mean' or 'sum', one value for a step, got 'none'"
        )
        if mini_batch_size is not None:
            mini_batch_size = validation.count(mini_batch_size, "mini_batch_size", 1)
        self.model, self.loss, self.mini_batch_size = model, module, mini_batch_size

    def forward(self, inputs: Any, labels: Any, prompt: str | None = None, task: str | None = None) -> torch.Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        inputs : sequence of two columns
            Queries, and the list of documents of each.
        labels : sequence of array_like
            Labels of each query's documents.
        prompt : str, optional
            Prompt that the model's ``preprocess`` puts before the pairs.
        task : str, optional
            Task for the model's ``preprocess``.

        Returns
        -------
        Tensor
            A scalar.
        """
        queries, documents = _columns(inputs)
        sizes = [len(each) for each in documents]
        validation.require(labels is not None, "labels must be given, in a column 'labels' of the data set, got None")
        labels = [torch.as_tensor(each) for each in labels]
        if [each.shape for each in labels] != [(size,) for size in sizes]:
            _refuse_labels(labels, sizes)
        pairs = [(query, document) for query, each in zip(queries, documents, strict=True) for document in each]
        validation.require(pairs, f"inputs must hold documents, got {len(sizes)} queries without any")
        at_once = self.mini_batch_size or len(pairs)
        *parts, last = [pairs[i : i + at_once] for i in range(0, len(pairs), at_once)]
        # A wrapper for several processes may exchange buffers in each pass: it gets one, the last, whose graph is kept.
        of_parts = [self._scores(_without_wrapper(self.model), part, prompt, task, True) for part in parts]
        scores = torch.cat([*of_parts, self._scores(self.model, last, prompt, task, False)])
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return self.loss(scores, torch.cat(labels), offsets=np.cumsum([0, *sizes]))

    def _scores(self, model: Any, pairs: Any, prompt: str | None, task: str | None, again: bool) -> Any:
        """Compute the scores of pairs, (n_pairs,), with their graph or by one that is made ``again`` in ``backward``.

        The features are a plain dictionary: PyTorch's wrapper for several processes finds the results in it.
        """
        features = dict(self.model.preprocess(pairs, prompt=prompt, task=task))
        on_device = {
            name: value.to(self.model.device) if isinstance(value, torch.Tensor) else value
            for name, value in features.items()
        }

        def scores() -> Any:
            return model({**on_device})["scores"].reshape(-1)

        if not again:
            return scores()
        return torch.utils.checkpoint.checkpoint(
            scores, use_reentrant=False, preserve_rng_state=False,
            context_fn=lambda: (contextlib.nullcontext(), RandContext(*on_device.values())),
        )  # fmt: skip

    def get_config_dict(self) -> dict[str, Any]:
        """Return the loss and its options, for the model card.

        Returns
        -------
        dict
        """
        of_loss = vars(self.loss)
        values = {**of_loss, **of_loss.get("options", {})}
        options = {name: values[name] for name in inspect.signature(type(self.loss)).parameters if name != "n_threads"}
        if options.get("rank_weights") is not None:
            options["rank_weights"] = np.asarray(options["rank_weights"]).tolist()
        return {"loss": self._name, **options, "mini_batch_size": self.mini_batch_size}

    @property
    def citation(self) -> str:
        """The source of the loss in BibTeX, for the model card."""
        key, author, title, venue, year = SOURCES[self._name]
        fields = {"title": title, "author": author, "booktitle": venue, "year": year}
        lines = ",\n".join(f"    {name} = {{{value}}}" for name, value in fields.items())
        return f"\n@inproceedings{{{key},\n{lines},\n}}\n"

    @property
    def _name(self) -> str:
        return getattr(self.loss, "loss", "expected_metric")


def _columns(inputs: Any) -> Any:
    n_columns = len(inputs)
    must = "inputs must be two columns, the query and a list of documents"
    validation.require(n_columns == 2, f"{must}, got {n_columns}: remove other columns, and name the grades 'labels'")
    texts = [query for query, documents in enumerate(inputs[1]) if isinstance(documents, str)]
    if texts:
        got = f"{validation.shown(inputs[1][texts[0]])} as documents of query {texts[0]}"
        validation.require(False, f"{must}, in this order, got {got}")
    return inputs


def _refuse_labels(labels: Any, sizes: list[int]) -> None:
    shapes = [tuple(np.shape(each)) for each in labels]
    must = "labels must be a list of one value per document for each query"
    validation.require(len(shapes) == len(sizes), f"{must}, {len(sizes)} lists, got {len(shapes)}")
    query = next(i for i, (shape, size) in enumerate(zip(shapes, sizes, strict=True)) if shape != (size,))
    validation.require(False, f"{must}, {sizes[query]} for query {query}, got shape {shapes[query]}")


def _without_wrapper(model: Any) -> Any:
    """Return the model within PyTorch's wrapper for several processes, and within its compiled form if in it."""
    inner = getattr(model, "_orig_mod", model)
    return inner.module if isinstance(inner, torch.nn.parallel.DistributedDataParallel) else model
