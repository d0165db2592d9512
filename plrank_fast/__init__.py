"""Gradients of expected ranking metrics under Plackett-Luce, at C speed.

Each module imports only modules listed above it::

    scalar types, SIMD level, threads     _typedefs  _simd  _threads  _layout
    batches of queries, their one driver  _queries  _batch
    random streams, selection             _random  _selection
    samplers                              _introselect  _weights  _samplers
    estimators of sampled rankings        _estimator  _remaining  _plrank  _plrank_pass  _latin_hypercube
                                          _hessian  _conditional  _policy_gradient  _sampled
                                          _stochastic_rank
    what arguments hold                   _rankings  _magnitudes
    metrics of given rankings             _metrics
    losses                                _loss  _likelihood_losses  _pair_losses  _rank_losses  _losses
    expectations without sampling         _exact
    the C interface                       cython_plrank
    ------------------------------------  compiled above, thin Python below
    arguments, errors, extreme values     validation  scaling
    public functions                      rank_weights  offsets  sampling  gradients  policy_gradients
                                          probabilities  metrics  losses  fairness  embedding
                                          cost_model  value_and_gradient  chunks
    oracle in readable NumPy              reference  reference_losses  reference_metrics
    inside other libraries                layouts  expected_loss  torch  jax  sklearn  interchange  compat
                                          boosting  lightgbm  xgboost  catboost
    data, training, command line          data  progress_bar  training  bench  __main__

Inside every compiled module the same floors, top to bottom: per item, per query, batch, entry point.
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
