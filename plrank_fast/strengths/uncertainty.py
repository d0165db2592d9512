"""Covariances that hold if the model does not: of slopes by ranking or by cluster, and from leaving clusters out."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from plrank_fast import validation
from plrank_fast._core.strengths.clusters import add_squares
from plrank_fast.strengths.model import Model
from plrank_fast.strengths.observed import ordered
from plrank_fast.validation import FloatArray, IntArray

MOST_MOVED = 1e6  # strengths apart, by leaving a cluster out
ANGLES = 1 << 16
EXACT_DEGREES = 1_000  # up to which the quantile of t is an integral over angles


def clusters_of(clusters: Any, number: int) -> tuple[IntArray, list[Any]]:
    """Return the number of the cluster of each ranking, and the names of clusters."""
    labels = validation.one_entry_each(
        validation.query_identifiers(clusters, "clusters"), "clusters", number, "rankings"
    )
    names, codes = np.unique(labels, return_inverse=True)
    validation.require(names.size > 1, f"clusters must name two clusters or more, got {names.size}")
    return codes, names.tolist()


def covariance_of_slopes(
    model: Model, parameters: FloatArray, inverse: FloatArray, clusters: IntArray, repeated: bool
) -> FloatArray:
    """Return the covariance of the parameters by the slopes of clusters.

    ``repeated`` says that a ranking of weight w is w clusters that agree; otherwise slopes are added up, times weights.
    """
    weights, size = model.likelihood.observed.counts / model.unit, model.likelihood.size
    rows, columns, values = _slopes(model, parameters, clusters, np.sqrt(weights) if repeated else weights)
    cells, at = np.unique(rows * size + columns, return_inverse=True)
    squares = np.zeros((size, size))
    add_squares(*np.divmod(cells, size), np.bincount(at, values), squares)
    meat = model.of_parameters(model.of_parameters(squares).T)
    n_clusters = int(clusters.max()) + 1
    factor = 1.0 / model.unit if repeated else n_clusters / (n_clusters - 1)
    return factor * (inverse @ meat @ inverse)


def covariance_of_omissions(model: Model, parameters: FloatArray, clusters: IntArray, names: list[Any]) -> FloatArray:
    """Return the covariance of the parameters by the step of Newton's method that omits each cluster."""
    likelihood, information = model.likelihood, model.information(parameters)
    weights, size = likelihood.observed.counts, likelihood.size
    rows, columns, values = _slopes(model, parameters, clusters, weights / model.unit)
    order, moves = np.argsort(rows, kind="stable"), []
    ends = np.searchsorted(rows[order], np.arange(len(names) + 1))
    for cluster, name in enumerate(names):
        own = order[ends[cluster] : ends[cluster + 1]]
        slope = model.of_parameters(np.bincount(columns[own], values[own], size).astype(float)[:, np.newaxis])[:, 0]
        counted = (clusters == cluster) & (likelihood.kinds >= 0)
        counts = np.bincount(likelihood.kinds[counted], weights[counted], likelihood.counts.size).astype(float)
        part = likelihood.with_counts(counts).information(model.strengths(parameters))
        try:
            move = np.linalg.solve(information - model.of_parameters(model.of_parameters(part).T), slope)
        except np.linalg.LinAlgError:
            move = np.full_like(slope, np.inf)
        enough = bool((np.abs(move) < MOST_MOVED).all())
        problem = f"the rankings without cluster {name!r} do not determine the strengths"
        validation.require(enough, f"{problem}: pass covariance='clustered', or a ridge")
        moves.append(move)
    return (len(names) - 1) / len(names) * (np.transpose(moves) @ np.array(moves))


def _slopes(
    model: Model, parameters: FloatArray, clusters: IntArray, weights: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return clusters, numbers of strengths, coefficients and log deltas, and slopes times weights."""
    likelihood, n = model.likelihood, model.n_items
    observed = ordered(likelihood.observed)
    _, slopes, of_sizes = likelihood.slopes(observed, model.strengths(parameters))
    ranking, first = observed.ranking, observed.limits[:-1]
    if likelihood.ties == "half":
        draws = first[observed.lengths == 2]
        draws = draws[observed.places[draws] == observed.places[draws + 1]]
        scores = likelihood.scores(observed, model.strengths(parameters))
        slopes[draws] = 0.5 * np.tanh(0.5 * (scores[draws + 1] - scores[draws]))
        slopes[draws + 1] = -slopes[draws]
    slopes = slopes * weights[ranking]
    parts, k = [(clusters[ranking], observed.entries, slopes)], likelihood.n_features
    for number, column in enumerate(observed.features.T):
        parts.append((clusters[ranking], np.full(slopes.size, n + number), slopes * column))
    for number, column in enumerate(of_sizes.T):
        parts.append((clusters, np.full(clusters.size, n + k + number), weights * column))
    rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, columns, values


def quantile(confidence: float, degrees: float) -> float:
    """Return how many standard errors an interval reaches to each side, by Student's t of so many degrees."""
    confidence = validation.real(confidence, "confidence", above=0.0, below=1.0)
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    if degrees > EXACT_DEGREES:
        series = (z**3 + z) / 4 + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees)
        return z + series / degrees
    angles = np.linspace(0.0, 0.5 * np.pi, ANGLES)  # whose tangent is t / sqrt(degrees)
    density = np.cos(angles) ** (degrees - 1.0)
    inside = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return float(np.tan(np.interp(confidence * inside[-1], inside, angles)) * np.sqrt(degrees))
