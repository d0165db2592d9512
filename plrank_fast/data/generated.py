"""Generated ranking data with the shapes of the public benchmark sets, for when the real files are not at hand.

Every document has a few latent factors. Its relevance is a non-linear function of them, shifted per query (some queries
have nothing good to offer) and blurred by noise; cutting it at fixed thresholds gives the labels in the profile's
shares. Its features are noisy monotone functions of one or two factors each, of mixed usefulness. So a linear model
ranks better than chance, a network better than a linear model, and none perfectly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast.data.ranking_data import RankingData
from plrank_fast.validation import count

N_FACTORS = 12
SPLITS = ("train", "vali", "test")
QUERIES_PER_CHUNK = 256  # bounds the temporaries; part of the definition of the data, like every constant here


@dataclass(frozen=True)
class Profile:
    """The shape of a data set.

    Parameters
    ----------
    n_queries : int
        Queries of the training part.
    n_features : int
        Feature columns.
    mean_length, max_length : float, int
        Documents per query.
    length_concentration : float
        How alike the lists are in length (the sum of the two beta parameters); chosen, not published.
    label_shares : tuple of float
        Share of the documents with label 0, 1, 2, 3, 4.
    """

    n_queries: int
    n_features: int
    mean_length: float
    max_length: int
    length_concentration: float
    label_shares: tuple[float, float, float, float, float]


# Queries, features and list lengths are those published with the sets, and so are the label shares of MSLR-Web30k;
# the shares of the other two are only plausible: Yahoo! mostly middling labels, Istella nearly all irrelevant.
PROFILES: dict[str, Profile] = {
    "yahoo": Profile(19_944, 501, 23.7, 139, 9.0, (0.26, 0.36, 0.28, 0.08, 0.02)),
    "mslr": Profile(18_919, 131, 119.8, 1_251, 25.0, (0.52, 0.32, 0.13, 0.02, 0.01)),
    "istella": Profile(20_901, 193, 315.9, 439, 4.0, (0.89, 0.04, 0.03, 0.02, 0.02)),
}


def generate(
    profile: str,
    n_queries: int | None = None,
    *,
    seed: int = 0,
    split: str = "train",
    n_features: int | None = None,
) -> RankingData:
    """Draw a data set with the shape of a public one.

    The same seed gives the same ground truth in all three splits and independent documents in each.

    Parameters
    ----------
    profile : {"yahoo", "mslr", "istella"}
        Whose shape to take.
    n_queries : int, optional
        Number of queries, by default that of the profile's training part.
    seed : int
        Equal arguments give equal data.
    split : {"train", "vali", "test"}
        Which part.
    n_features : int, optional
        Number of feature columns, by default that of the profile.

    Returns
    -------
    RankingData
        float32 features in [0, 1]; labels 0 to 4; every query has at least one document.

    Raises
    ------
    TypeError
        If a number is no integer.
    ValueError
        If an argument is out of its range.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    shape = PROFILES[profile]
    n_queries = shape.n_queries if n_queries is None else n_queries
    n_features = shape.n_features if n_features is None else n_features
    n_queries, n_features = count(n_queries, "n_queries", 1), count(n_features, "n_features", 1)
    seed = count(seed, "seed", 0)

    key = [list(PROFILES).index(profile), seed]
    truth = _GroundTruth(_generator(*key, 0), n_features, shape.label_shares)
    rng = _generator(*key, 1 + SPLITS.index(split))
    lengths = list_lengths(rng, shape, n_queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    features = np.empty((offsets[-1], n_features), dtype=np.float32)
    labels = np.empty(offsets[-1])
    for first in range(0, n_queries, QUERIES_PER_CHUNK):
        last = min(first + QUERIES_PER_CHUNK, n_queries)
        rows = slice(offsets[first], offsets[last])
        labels[rows] = truth.draw(rng, lengths[first:last], out=features[rows])
    return RankingData(
        features=features,
        labels=labels,
        offsets=offsets,
        qids=np.arange(1, n_queries + 1),
        name=f"{profile} profile, {split}, seed {seed}",
    )


class _GroundTruth:
    """What is common to the splits: which features tell what, and how factors make relevance."""

    def __init__(self, rng: np.random.Generator, n_features: int, label_shares: tuple[float, ...]) -> None:
        self.sources = rng.integers(0, N_FACTORS, (2, n_features))
        self.loadings = rng.normal(size=(2, n_features)).astype(np.float32) * np.array([[1.0], [0.5]], dtype=np.float32)
        self.noise = rng.uniform(0.5, 3.0, n_features).astype(np.float32)  # from telling to nearly useless
        self.linear = rng.normal(size=N_FACTORS)
        self.partners = rng.permutation(N_FACTORS)
        self.bends = rng.normal(size=N_FACTORS)
        sample = self._relevance(rng, np.full(2000, 20), rng.standard_normal((40_000, N_FACTORS), dtype=np.float32))
        self.thresholds = np.quantile(sample, np.cumsum(label_shares)[:-1])

    def draw(
        self, rng: np.random.Generator, lengths: npt.NDArray[np.int64], out: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.int64]:
        """Draw the documents of a few queries: features into ``out``, labels returned."""
        factors = rng.standard_normal((len(out), N_FACTORS), dtype=np.float32)
        rng.standard_normal(out=out, dtype=np.float32)
        out *= self.noise
        for source, loading in zip(self.sources, self.loadings, strict=True):
            out += factors[:, source] * loading
        np.multiply(out, 0.5, out=out)  # the logistic function, by way of tanh: nothing overflows
        np.tanh(out, out=out)
        out += 1
        out *= 0.5
        return np.searchsorted(self.thresholds, self._relevance(rng, lengths, factors))

    def _relevance(
        self, rng: np.random.Generator, lengths: npt.NDArray[np.int64], factors: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        # einsum and not a matrix product: BLAS may give other bits on another number of threads
        signal = np.einsum("df,f->d", factors, self.linear)
        signal += np.einsum("df,f->d", np.abs(factors) * np.sign(factors[:, self.partners]), self.bends)
        query = np.repeat(rng.normal(size=len(lengths)), lengths)
        blur = rng.normal(size=len(factors))
        scale = np.sqrt(np.sum(self.linear**2) + np.sum(self.bends**2))
        relevance: npt.NDArray[np.float64] = signal / scale + 0.5 * query + 0.5 * blur
        return relevance


def list_lengths(rng: np.random.Generator, shape: Profile, n_queries: int) -> npt.NDArray[np.int64]:
    """1 + beta-binomial: exactly the profile's mean in expectation, and never past its maximum."""
    mean = (shape.mean_length - 1) / (shape.max_length - 1)
    chance = rng.beta(shape.length_concentration * mean, shape.length_concentration * (1 - mean), n_queries)
    return 1 + rng.binomial(shape.max_length - 1, chance)


def _generator(*key: int) -> np.random.Generator:
    bits: Any = np.random.PCG64(np.random.SeedSequence(key))
    return np.random.Generator(bits)
