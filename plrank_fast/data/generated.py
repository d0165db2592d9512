"""Generated ranking data with the shapes of the public benchmark sets, for use without the real files.

Every document has a few latent factors. Its relevance is a sum of conjunctions - so much if this factor is above a
threshold and that one below another - and, to a lesser part, linear in the factors, shifted per query (some queries
have nothing good to offer) and blurred by noise; cutting it at fixed thresholds gives the labels in the profile's
shares. Its features are noisy monotone functions of one or two factors each, from nearly exact to nearly useless, and
many are skewed: most documents lie close to 0 and a few far above, as counts of terms and of clicks do. So a linear
model ranks better than chance, a network better than a linear model, and boosted trees, which find thresholds and do
not mind the skew, better than a network, as published for the real sets. None ranks perfectly. (With few queries a
network learns its training queries by heart; ``examples/generated_sets.py`` measures the order.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plrank_fast.data.ranking_data import RankingData
from plrank_fast.validation import ProfileName, Split, choice, count

N_FACTORS = 12
N_CONJUNCTIONS = 16
LEAST_NOISE, MOST_NOISE = 0.1, 3.0  # the noise of a feature, beside factors of standard deviation 1
SKEW = 4.0  # the most that a feature is moved into the lower tail of the logistic function
SPLITS: tuple[Split, ...] = ("train", "vali", "test")
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
    length_centre, length_spread : float
        Mean and standard deviation of the logarithm of the length, before it is cut at the maximum; the spread is
        chosen, not published, and the centre gives lengths their mean.
    interactions, blur : float
        Share of the conjunctions in the variance of what features can tell, and standard deviation of what they cannot;
        chosen so that linear models, networks and trees differ about as much as published.
    label_shares : tuple of float
        Share of the documents with label 0, 1, 2, 3, 4.
    """

    n_queries: int
    n_features: int
    mean_length: float
    max_length: int
    length_centre: float
    length_spread: float
    interactions: float
    blur: float
    label_shares: tuple[float, float, float, float, float]


# Queries, features and list lengths are those published with the sets, and so are the label shares of MSLR-Web30k;
# the shares of the other two are only plausible: Yahoo! mostly middling labels, Istella nearly all irrelevant.
PROFILES: dict[str, Profile] = {
    "yahoo": Profile(19_944, 501, 23.7, 139, 3.040541283349371, 0.5, 0.9, 0.9, (0.26, 0.36, 0.28, 0.08, 0.02)),
    "mslr": Profile(18_919, 131, 119.8, 1_251, 4.568177741879829, 0.66, 0.95, 0.6, (0.52, 0.32, 0.13, 0.02, 0.01)),
    "istella": Profile(20_901, 193, 315.9, 439, 5.738757819193955, 0.25, 0.95, 0.6, (0.89, 0.04, 0.03, 0.02, 0.02)),
}


def generate(
    profile: ProfileName,
    n_queries: int | None = None,
    *,
    seed: int = 0,
    split: Split = "train",
    n_features: int | None = None,
) -> RankingData:
    """Draw a data set with the shape of a public one.

    The same seed gives the same ground truth in all three splits and independent documents in each.

    Parameters
    ----------
    profile : {"yahoo", "mslr", "istella"}
        Public set whose shape to take.
    n_queries : int, optional
        Number of queries, by default as in the profile's training part.
    seed : int
        Equal arguments give equal data.
    split : {"train", "vali", "test"}
        Part of the data set.
    n_features : int, optional
        Number of feature columns, by default as in the profile.

    Returns
    -------
    RankingData
        float32 features in [0, 1]; labels 0 to 4; every query has at least one document.
    """
    choice(profile, "profile", tuple(PROFILES))
    choice(split, "split", tuple(SPLITS))
    shape = PROFILES[profile]
    n_queries = count(shape.n_queries if n_queries is None else n_queries, "n_queries", 1)
    n_features = count(shape.n_features if n_features is None else n_features, "n_features", 1)
    seed = count(seed, "seed", 0)

    key = [list(PROFILES).index(profile), seed]
    truth = _GroundTruth(_generator(*key, 0), n_features, shape)
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
        query_ids=np.arange(1, n_queries + 1),
        name=f"{profile} profile, {split}, seed {seed}",
    )


class _GroundTruth:
    """The relation between factors, features and relevance, which all splits share."""

    def __init__(self, rng: np.random.Generator, n_features: int, shape: Profile) -> None:
        self.shape = shape
        self.sources = rng.integers(0, N_FACTORS, (2, n_features))
        self.loadings = rng.normal(size=(2, n_features)).astype(np.float32) * np.array([[1.0], [0.5]], dtype=np.float32)
        self.noise = np.exp(rng.uniform(np.log(LEAST_NOISE), np.log(MOST_NOISE), n_features)).astype(np.float32)
        self.shift = rng.uniform(0.0, SKEW, n_features).astype(np.float32)
        self.linear = rng.normal(size=N_FACTORS)
        self.linear /= np.linalg.norm(self.linear)
        # Each conjunction has two different factors.
        self.pairs = rng.permuted(np.tile(np.arange(N_FACTORS), (N_CONJUNCTIONS, 1)), axis=1)[:, :2]
        self.bounds = rng.uniform(-0.5, 0.8, (N_CONJUNCTIONS, 2))
        self.sides = rng.choice([-1.0, 1.0], (N_CONJUNCTIONS, 2))
        self.worth = rng.normal(size=N_CONJUNCTIONS)
        factors = rng.standard_normal((40_000, N_FACTORS), dtype=np.float32)
        conjunctions = self._conjunctions(factors)
        self.centre, self.scale = float(conjunctions.mean()), float(conjunctions.std())
        sample = self._relevance(rng, np.full(2000, 20), factors)
        self.thresholds = np.quantile(sample, np.cumsum(shape.label_shares)[:-1])

    def draw(
        self, rng: np.random.Generator, lengths: npt.NDArray[np.int64], out: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.int64]:
        """Draw the documents of a few queries: write features into ``out`` and return labels."""
        factors = rng.standard_normal((len(out), N_FACTORS), dtype=np.float32)
        rng.standard_normal(out=out, dtype=np.float32)
        out *= self.noise
        for source, loading in zip(self.sources, self.loadings, strict=True):
            out += factors[:, source] * loading
        out -= self.shift
        np.multiply(out, 0.5, out=out)  # the logistic function, by way of tanh: nothing overflows
        np.tanh(out, out=out)
        out += 1
        out *= 0.5
        return np.searchsorted(self.thresholds, self._relevance(rng, lengths, factors))

    def _relevance(
        self, rng: np.random.Generator, lengths: npt.NDArray[np.int64], factors: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        share = self.shape.interactions
        # einsum replaces a matrix product, as the bits of BLAS may depend on the number of threads.
        relevance: npt.NDArray[np.float64] = np.sqrt(1 - share) * np.einsum("df,f->d", factors, self.linear)
        relevance += np.sqrt(share) * (self._conjunctions(factors) - self.centre) / self.scale
        relevance += 0.5 * np.repeat(rng.normal(size=len(lengths)), lengths)
        relevance += self.shape.blur * rng.normal(size=len(factors))
        return relevance

    def _conjunctions(self, factors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Sum of the values of the conjunctions that hold for a document."""
        total = np.zeros(len(factors))
        for (i, j), bounds, sides, worth in zip(self.pairs, self.bounds, self.sides, self.worth, strict=True):
            first, second = (sides[k] * (factors[:, f] - bounds[k]) > 0 for k, f in enumerate((i, j)))
            total += worth * (first & second)
        return total


def list_lengths(rng: np.random.Generator, shape: Profile, n_queries: int) -> npt.NDArray[np.int64]:
    """Draw list lengths: log-normal, rounded, and cut at the maximum, with the published mean."""
    lengths = np.exp(shape.length_centre + shape.length_spread * rng.standard_normal(n_queries))
    return np.rint(np.clip(lengths, 1, shape.max_length)).astype(np.int64)


def _generator(*key: int) -> np.random.Generator:
    bits: Any = np.random.PCG64(np.random.SeedSequence(key))
    return np.random.Generator(bits)
