"""The names that arguments can take: type checkers and editors show them, and the checks read them from here."""

from __future__ import annotations

from typing import Literal

Method = Literal[
    "auto", "exact", "cmc", "pl_rank_3", "pl_rank_2", "pl_rank_1", "stochastic_rank", "policy_gradient",
]  # fmt: skip
LossName = Literal[
    "pointwise", "softmax_cross_entropy", "list_mle", "pairwise_logistic", "lambda_rank", "lambda_loss", "approx_ndcg",
    "soft_rank",
]  # fmt: skip
MetricName = Literal["ndcg", "dcg", "precision", "recall", "mrr", "err", "success", "ap"]
ExpectationMethod = Literal["exact", "sample"]
Sampler = Literal["auto", "introselect", "network", "slot_table", "threshold", "guide_table"]
Noise = Literal["gumbel", "normal"]
Gain = Literal["exponential", "linear"]
Normalization = Literal["query", "dataset"]
Curvature = Literal["gradient", "hessian"]
Reduction = Literal["mean", "sum", "none"]
RankingLossName = Literal[
    "pointwise", "softmax_cross_entropy", "list_mle", "plackett_luce", "pairwise_logistic", "lambda_rank",
    "lambda_loss", "approx_ndcg", "soft_rank",
]  # fmt: skip
RankTies = Literal["index", "average"]
LabelTies = Literal["index", "random", "exact"]
Truncation = Literal["metric", "pairs"]
Disparity = Literal["squared", "absolute"]
PortableForm = Literal["booster", "json"]
Pointwise = Literal["squared", "logistic"]
Unranked = Literal["absent", "last"]
Ties = Literal["unknown", "half", "davidson"]
Undecided = Literal["error", "groups"]
Covariance = Literal["observed", "robust", "clustered", "jackknife"]
RankRule = Literal["each", "simultaneous", "overlap"]
ProfileName = Literal["yahoo", "mslr", "istella"]
Split = Literal["train", "vali", "test"]
