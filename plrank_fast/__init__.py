"""Gradients of expected ranking metrics under the Plackett-Luce model, at C speed.

The documents of all queries are concatenated in one array, and ``offsets`` mark where each query starts:

>>> import numpy as np, plrank_fast as plr
>>> scores = np.array([0.2, 1.0, -0.5, 0.7, 0.1])             # two queries, of three and two documents
>>> labels = np.array([0, 1, 2, 0, 1])
>>> offsets = [0, 3, 5]                                       # or plr.offsets_from_qid, plr.offsets_from_group
>>> gradient = plr.pl_rank_exact(scores, plr.gains(labels), plr.dcg_weights(10), offsets=offsets)
>>> gradient.round(3)                                         # step along it to raise the expected DCG@10
array([-0.179, -0.011,  0.19 , -0.084,  0.084])
>>> plr.ndcg(scores, plr.gains(labels), cutoff=10, offsets=offsets).round(3)
array([0.689, 0.631])

``help(plr.pl_rank_exact)`` and so on describe each function. An overview:

- gradients: ``pl_rank_exact``, ``pl_rank_cmc``, ``pl_rank_3``, ``pl_rank_2``, ``pl_rank_1``, ``stochastic_rank``,
  ``policy_gradient``; ``value_and_gradient`` for any of them with the metric's value;
  ``pl_rank_exact_hvp``, products with the Hessian;
- rankings and their probabilities: ``sample_rankings``, ``ranking_log_prob``, ``ranking_log_prob_vjp``,
  ``bucket_log_prob``, ``bucket_log_prob_vjp`` of rankings with ties, ``fit_strengths`` to observed rankings,
  ``rank_probabilities``, ``inclusion_probabilities``, ``exposure``, ``scores_for_exposure``;
  ``PlackettLuce``, the distribution as an object;
- metrics: ``expected_metric`` and ``expected_ap`` of the policy; ``dcg``, ``ndcg``, ``precision``, ``recall``, ``ap``,
  ``mrr``, ``success``, ``err``, ``rbp``, ``average_relevance_position`` of the ranking by score; ``ideal_dcg``, by
  which NDCG divides;
- rank weights and gains: ``dcg_weights``, ``precision_weights``, ``rbp_weights``, ``gains``;
- batches: ``offsets_from_qid``, ``offsets_from_group``;
- ``losses`` to descend: pointwise, softmax cross-entropy, ListMLE, LambdaRank and others; ``fairness`` of exposure;
- ``rewards``: the expectation of alpha-NDCG of a policy, or of any other reward of rankings, by samples;
- ``off_policy``: values of a policy and their gradients from rankings that another policy has shown, clicks;
- ``train`` a network, to score documents with; ``load_model`` reads one that was saved;
- ``data``: LETOR files and generated sets; ``interchange``: runs and judgements; ``chunks``: batches for process pools;
- adapters to other libraries: ``plrank_fast.torch``, ``.jax``, ``.sklearn``, ``.lightgbm``, ``.xgboost``,
  ``.catboost``, ``.dask``, ``.spark``, ``.sentence_transformers``, ``.trl``; ``boosting`` serves any other library of
  boosted trees;
- ``reference``: readable implementations of every kernel in NumPy; ``get_include`` and ``stream_key`` for the C
  interface; ``build_info``.

Gradients ascend and losses descend: the functions above return the direction in which the expected metric grows, those
of ``losses`` and ``fairness`` return the gradient of a quantity that is to be minimised. An argument that is not as
its function describes it raises a TypeError or ValueError, whose message names the argument.
"""

import typing as _typing
from importlib import import_module as _import_module

try:
    from plrank_fast import fairness, losses
except ImportError as _error:
    if not (_error.name or "").startswith("plrank_fast._core"):
        raise
    raise ImportError(
        f"plrank_fast in {__path__[0]} is not compiled, or has changed since: run `make build` or `pip install -e .` "
        "in the folder above, or import an installed plrank_fast from another folder"
    ) from _error
from plrank_fast.bucket_order import bucket_log_prob, bucket_log_prob_vjp
from plrank_fast.build import __version__ as __version__
from plrank_fast.build import build_info
from plrank_fast.distribution import PlackettLuce
from plrank_fast.embedding import get_include, stream_key
from plrank_fast.exposure_targets import scores_for_exposure
from plrank_fast.gradients import pl_rank_1, pl_rank_2, pl_rank_3, pl_rank_cmc, pl_rank_exact
from plrank_fast.metrics import (
    ap,
    average_relevance_position,
    dcg,
    err,
    ideal_dcg,
    mrr,
    ndcg,
    precision,
    rbp,
    recall,
    success,
)
from plrank_fast.offsets import offsets_from_group, offsets_from_qid
from plrank_fast.policy_gradients import policy_gradient
from plrank_fast.probabilities import (
    expected_ap,
    expected_metric,
    exposure,
    inclusion_probabilities,
    rank_probabilities,
)
from plrank_fast.rank_weights import dcg_weights, gains, precision_weights, rbp_weights
from plrank_fast.sampling import ranking_log_prob, ranking_log_prob_vjp, sample_rankings
from plrank_fast.second_derivatives import pl_rank_exact_hvp
from plrank_fast.stochastic_rank import stochastic_rank
from plrank_fast.strengths import fit_strengths
from plrank_fast.value_and_gradient import value_and_gradient

if _typing.TYPE_CHECKING:
    from plrank_fast import boosting, chunks, data, interchange, off_policy, reference, rewards
    from plrank_fast.training.model import load_model
    from plrank_fast.training.train import train

__all__ = [
    "PlackettLuce",
    "ap",
    "average_relevance_position",
    "boosting",
    "bucket_log_prob",
    "bucket_log_prob_vjp",
    "build_info",
    "chunks",
    "data",
    "dcg",
    "dcg_weights",
    "err",
    "expected_ap",
    "expected_metric",
    "exposure",
    "fairness",
    "fit_strengths",
    "gains",
    "get_include",
    "ideal_dcg",
    "inclusion_probabilities",
    "interchange",
    "load_model",
    "losses",
    "mrr",
    "ndcg",
    "off_policy",
    "offsets_from_group",
    "offsets_from_qid",
    "pl_rank_1",
    "pl_rank_2",
    "pl_rank_3",
    "pl_rank_cmc",
    "pl_rank_exact",
    "pl_rank_exact_hvp",
    "policy_gradient",
    "precision",
    "precision_weights",
    "rank_probabilities",
    "ranking_log_prob",
    "ranking_log_prob_vjp",
    "rbp",
    "rbp_weights",
    "recall",
    "reference",
    "rewards",
    "sample_rankings",
    "scores_for_exposure",
    "stochastic_rank",
    "stream_key",
    "success",
    "train",
    "value_and_gradient",
]

# These are imported at their first use: they would make ``import plrank_fast`` take half as long again.
_ADAPTERS = (
    "torch", "jax", "sklearn", "lightgbm", "xgboost", "catboost", "dask", "spark", "sentence_transformers", "trl",
)  # fmt: skip
_FUNCTIONS_ON_FIRST_USE = {
    "load_model": "plrank_fast.training.model",
    "train": "plrank_fast.training.train",
}
_METRICS = {"reciprocal_rank": "mrr", "average_precision": "ap", "map": "ap", "hit_rate": "success"}
_ON_FIRST_USE = ("boosting", "chunks", "data", "interchange", "off_policy", "reference", "rewards")


def __getattr__(name: str) -> _typing.Any:
    if name in _ON_FIRST_USE:
        return _import_module(f"plrank_fast.{name}")
    if name in _FUNCTIONS_ON_FIRST_USE:
        return getattr(_import_module(_FUNCTIONS_ON_FIRST_USE[name]), name)
    if name in _ADAPTERS:
        try:
            return _import_module(f"plrank_fast.{name}")
        except ImportError as error:  # hasattr expects an AttributeError
            raise AttributeError(f"plrank_fast.{name} cannot be imported: {error}") from error
    hint = f": the metric is plrank_fast.{_METRICS[name]}" if name in _METRICS else ""
    raise AttributeError(f"module 'plrank_fast' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__version__"]
