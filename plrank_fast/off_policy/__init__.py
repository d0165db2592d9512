"""The value of a new policy, and its gradient, estimated from rankings that another policy has shown.

A log holds rankings y_i of queries, drawn by a logging policy mu that gave each a probability, its *propensity*, and
their outcomes: one reward per ranking, one per rank, or clicks. The estimators differ in what they assume of the
reward, and the less they assume, the larger their variance (w is the ratio of the new policy's probability to the
log's):

================== ======================================== =====================================================
``ips``            mean of w(y) r                           unbiased for any reward
``rips``           mean of sum_k w(y_1 .. y_k) r_k          unbiased if r_k depends on the ranks down to k (cascade)
``iips``           mean of sum_k w(y_k at rank k) r_k       unbiased if r_k depends on rank and item alone
``pseudo_inverse`` least squares on items at ranks          unbiased if r is a sum over ranks of any such terms
``doubly_robust``  E[prediction] + mean of w (r - its own)  unbiased for any reward and any prediction
================== ======================================== =====================================================

All of this requires that mu gives a positive probability to everything that the new policy may show. ``clip`` bounds
the weights and ``self_normalized`` divides by their mean in place of 1: both accept a little bias for less variance.
Each estimator returns an `OffPolicyEstimate`: the value, a standard error, and, computed when they are asked for, its
gradient by the new scores, the effective number of sessions and a bootstrap interval. The value is the mean over all
sessions, whatever their query; a row of -1 does not count as a session, so that queries may have different numbers of
them.

``relevance_from_clicks`` turns clicks on items into relevance, which any gradient of this library takes: it divides
clicks by the exact exposure under the logging policy. ``position_bias_from_clicks`` estimates from the same clicks how
often users look at each rank.

Weights are exponentials of differences of log-probabilities. A session's term errs by at most 1e-12 of its absolute
value times 1 and the absolute terms of its two log-probabilities. Without ``clip`` a weight above 2**200 is an error. A
weight below 2e-308 may count as 0; of ``self_normalized`` weights, one that is so much smaller than the largest.
``iips``, ``pseudo_inverse`` and the prediction of ``doubly_robust`` are exact to 1e-8; ``iips`` divides this error by
the logging policy's probability of an item at a rank, and ``self_normalized`` by the mean weight too; least squares may
amplify it in ``pseudo_inverse``.

Source: Swaminathan and Joachims, "The self-normalized estimator for counterfactual learning", 2015; Swaminathan et al.,
"Off-policy evaluation for slate recommendation", 2017; Li et al., "Offline evaluation of ranking policies with click
models", KDD 2018; McInerney et al., "Counterfactual evaluation of slate recommendations with sequential reward
interactions", KDD 2020; Dudik, Langford and Li, "Doubly robust policy evaluation and learning", 2011; Oosterhuis and de
Rijke, "Policy-aware unbiased learning to rank for top-k rankings", SIGIR 2020.
"""

from plrank_fast.off_policy.clicks import position_bias, relevance_from_clicks, simulate_clicks, trust_bias
from plrank_fast.off_policy.estimate import OffPolicyEstimate, effective_sample_size
from plrank_fast.off_policy.examination import position_bias_from_clicks
from plrank_fast.off_policy.least_squares import pseudo_inverse
from plrank_fast.off_policy.propensities import ranking_propensities
from plrank_fast.off_policy.single_ranks import iips, rips
from plrank_fast.off_policy.whole_rankings import doubly_robust, ips

__all__ = [
    "OffPolicyEstimate",
    "doubly_robust",
    "effective_sample_size",
    "iips",
    "ips",
    "position_bias",
    "position_bias_from_clicks",
    "pseudo_inverse",
    "ranking_propensities",
    "relevance_from_clicks",
    "rips",
    "simulate_clicks",
    "trust_bias",
]


def __dir__() -> list[str]:
    return __all__
