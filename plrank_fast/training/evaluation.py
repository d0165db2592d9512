"""NDCG and other metrics of the ranking by score, and expected under Plackett-Luce."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import plrank_fast as plr
from plrank_fast import fairness
from plrank_fast.named_metrics import LabelledMetric, labelled_metric
from plrank_fast.rank_weights import GRADES_OR_GAINS, gains_by
from plrank_fast.validation import Gain, RankTies

Metrics = dict[str, float]


class History(list[Metrics]):
    """Metrics of the untrained network and after each epoch, which print as a table of epochs."""

    def __repr__(self) -> str:
        names = list(self[0]) if self else []
        rows = [
            f"{epoch:5}" + "".join(f"{metrics[name]:{len(name) + 2}.4f}" for name in names)
            for epoch, metrics in enumerate(self)
        ]
        return "\n".join(["".join(["epoch", *(f"  {name}" for name in names)]), *rows])


def evaluate_scores(
    scores: npt.NDArray[np.float64],
    labels: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    *,
    cutoff: int,
    n_threads: int | None = None,
    empty: float | Literal["drop"] = 0.0,
    with_disparity: bool = False,
    metric: Any = "ndcg",
    gain: Gain = "exponential",
    max_label: float | None = None,
    ties: RankTies = "index",
) -> Metrics:
    """Compute NDCG@K in four ways, and the disparity of exposure or another metric if wanted.

    ``ndcg_query`` is the mean over the queries of DCG / ideal DCG, ``ndcg_dataset`` summed DCG / summed ideal DCG, and
    ``expected_...`` takes the exact expected DCG instead. ``disparity`` is the mean over the queries of the squared
    disparity of expected exposure, with gains over the ideal DCG of the query as merit. ``metric`` and
    ``expected_...`` are the means over the queries of another metric by its name. ``empty`` is the value of a query
    without relevant documents in the means over queries; "drop" leaves such queries out. ``ties="average"`` takes the
    mean over all orders of equal scores, for metrics that are sums over ranks.
    """
    gain_of_labels = partial(gains_by, gain, why=GRADES_OR_GAINS)
    dcg = labelled_metric("dcg", labels, offsets, cutoff=cutoff, gain=gain_of_labels)
    ideal = plr.ideal_dcg(dcg.relevance, dcg.rank_weights, offsets=offsets)
    if not ideal.sum() > 0:
        raise ValueError("labels must include a relevant document (above 0); NDCG is not defined without one")
    answered, missing = ideal > 0, np.nan if empty == "drop" else empty
    metrics: Metrics = {}

    def both(named: LabelledMetric) -> dict[str, npt.NDArray[np.float64]]:
        options: dict[str, Any] = {"offsets": offsets, "n_threads": n_threads}
        return {"": named.of_ranking(scores, ties=ties, **options), "expected_": named.expected(scores, **options)}

    def mean(values: npt.NDArray[np.float64]) -> float:
        return float(np.nanmean(np.where(answered, values, missing)))

    for prefix, values in both(dcg).items():
        metrics[f"{prefix}ndcg_query"] = mean(values / np.where(answered, ideal, 1.0))
        metrics[f"{prefix}ndcg_dataset"] = float(values.sum() / ideal.sum())
    if metric != "ndcg":
        named = labelled_metric(metric, labels, offsets, cutoff=cutoff, gain=gain_of_labels, max_label=max_label)
        metrics |= {prefix + metric: mean(values) for prefix, values in both(named).items()}
    if with_disparity:
        exposure = plr.exposure(scores, dcg.rank_weights, offsets=offsets, n_threads=n_threads)
        merit = dcg.relevance / np.repeat(np.where(answered, ideal, 1.0), np.diff(offsets))
        metrics["disparity"] = float(fairness.disparity(exposure, merit, offsets=offsets)[0].mean())
    return metrics
