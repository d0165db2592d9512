"""Gradients of expected ranking metrics under Plackett-Luce, at C speed.

Each module imports only modules listed above it::

    _core/runtime       runs a call           scalar_types  simd  threads  layout  queries  batch  magnitudes
    _core/random        streams, selection    stream  selection
    _core/ranking       weights, rankings     weights  remaining  rankings  metrics
    _core/sampling      samplers              introselect  samplers  latin_hypercube
    _core/gradients     estimators, exact     estimator  pl_rank  pl_rank_groups  hessian  conditional
                                              policy_gradient  exposure  sampled  stochastic_rank  exact
    _core/losses        losses of labels      loss  likelihood  pairs  ranks  losses
    .                   the C interface       cython_plrank
    ------------------  compiled above, thin Python below
    .                   arguments, errors     extras  validation  scaling  build
                        public functions      rank_weights  offsets  sampling  metrics  losses  gradients
                                              policy_gradients  probabilities  stochastic_rank  fairness
                                              cost_model  value_and_gradient  chunks  embedding
                        oracle in NumPy       reference
                        other libraries       layouts  expected_loss  torch  jax  sklearn  interchange  boosting
                                              lightgbm  xgboost  catboost  compat
                        data, command line    data  progress_bar  training  commands  __main__

Inside every compiled module the same floors, top to bottom: per item, per query, batch, entry point. The C of the SIMD
loops stands in ``kernels``, in the same folders.
"""

from plrank_fast import fairness, losses
from plrank_fast.build import build_info
from plrank_fast.embedding import get_include, stream_key
from plrank_fast.gradients import pl_rank_1, pl_rank_2, pl_rank_3, pl_rank_cmc, pl_rank_exact
from plrank_fast.metrics import (
    average_precision,
    average_relevance_position,
    dcg,
    err,
    mrr,
    ndcg,
    precision,
    rbp,
    recall,
    reciprocal_rank,
    success,
)
from plrank_fast.offsets import offsets_from_group, offsets_from_qid
from plrank_fast.policy_gradients import placement_policy_gradient, policy_gradient
from plrank_fast.probabilities import expected_metric, exposure, exposure_vjp, rank_probabilities
from plrank_fast.rank_weights import dcg_weights, gains, precision_weights, rbp_weights
from plrank_fast.sampling import ranking_log_prob, sample_rankings
from plrank_fast.stochastic_rank import stochastic_rank
from plrank_fast.value_and_gradient import value_and_gradient

__version__ = "0.1.0"

__all__ = [
    "average_precision",
    "average_relevance_position",
    "build_info",
    "dcg",
    "dcg_weights",
    "err",
    "expected_metric",
    "exposure",
    "exposure_vjp",
    "fairness",
    "gains",
    "get_include",
    "losses",
    "mrr",
    "ndcg",
    "offsets_from_group",
    "offsets_from_qid",
    "pl_rank_1",
    "pl_rank_2",
    "pl_rank_3",
    "pl_rank_cmc",
    "pl_rank_exact",
    "placement_policy_gradient",
    "policy_gradient",
    "precision",
    "precision_weights",
    "rank_probabilities",
    "ranking_log_prob",
    "rbp",
    "rbp_weights",
    "recall",
    "reciprocal_rank",
    "sample_rankings",
    "stochastic_rank",
    "stream_key",
    "success",
    "value_and_gradient",
]
