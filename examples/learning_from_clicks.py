"""Learn to rank from simulated clicks, and compare estimates of relevance as the log grows.

    python examples/learning_from_clicks.py --data S1.txt S2.txt --picture clicks.png
    python examples/learning_from_clicks.py                              # a generated set

A logging policy shows ten documents of a query; users look at rank k with probability 1 / k and click on relevant
documents. The policy is Plackett-Luce with equal scores (uniform), with the scores of a ranker that was trained on
twenty queries (production), or with three times these scores (confident), which hardly shows documents that it does not
rank first. A linear ranker is then trained on the exact gradient of the expected DCG@10, with relevance from

    naive               clicks per session, as if users looked at all ranks
    IPS, sampled        clicks over the exposure in 100 drawn rankings of the logging policy
    IPS, exact          clicks over exact exposure
    doubly robust       clicks over exact exposure, around a regression on the features
    full information    the judgements themselves

The picture shows the NDCG@10 of held-out queries: the median over seeds, and the band from the lowest to the highest.
"""

import argparse
from pathlib import Path

import numpy as np

import plrank_fast as plr
from plrank_fast import off_policy
from plrank_fast.data import generate, load_letor

CUTOFF = 10
THETA = plr.dcg_weights(CUTOFF)
LOOKS = off_policy.position_bias(CUTOFF)
POLICIES = {
    "uniform": 0.0,
    "production": 1.0,
    "confident": 3.0,
}  # factors of the production ranker's scores
ESTIMATES = ("naive", "IPS, sampled", "IPS, exact", "doubly robust", "full information")


def standardized(X, offsets):
    """Scale the features of each query to mean 0 and deviation 1, and add a column of ones."""
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(sizes.size), sizes)

    def mean(values):
        return np.add.reduceat(values, offsets[:-1], axis=0) / sizes[:, np.newaxis]

    X = X - mean(X)[query]
    spread = np.sqrt(mean(X**2))[query]
    return np.column_stack([np.divide(X, spread, out=np.zeros_like(X), where=spread > 0), np.ones(len(X))])


def train(X, relevance, offsets, steps=60, rate=0.05):
    """Train the weights of a linear ranker by Adam on the exact gradient of the expected DCG."""
    weights, first, second = np.zeros((3, X.shape[1]))
    for step in range(1, steps + 1):
        gradient = X.T @ plr.pl_rank_exact(X @ weights, relevance, THETA, offsets=offsets, rtol=1e-3)
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        scale = np.sqrt(second / (1 - 0.99**step)) + 1e-12
        weights = weights + rate * first / (1 - 0.9**step) / scale
    return weights


def relevance_by(estimate, rankings, clicks, X, chances, logging, offsets, seed):
    """Estimate the probability of a click on each document that a user looks at."""
    if estimate == "full information":
        return chances
    exposure = {
        "naive": lambda: np.ones(len(X)),
        "IPS, sampled": lambda: plr.exposure(
            logging,
            LOOKS,
            offsets=offsets,
            rankings=plr.sample_rankings(logging, 100, LOOKS.size, offsets=offsets, rng=seed),
        ),
    }.get(estimate, lambda: plr.exposure(logging, LOOKS, offsets=offsets))()
    # a lower bound: rarely seen documents would give estimates of large variance
    exposure = np.maximum(exposure, 1.0 / np.sqrt(rankings.shape[1]))
    options = {"offsets": offsets}
    if estimate == "doubly robust":
        plain = off_policy.relevance_from_clicks(rankings, clicks, exposure, **options)
        # ridge regression, in which the weight of a document is the number of looks at it
        weighted = X.T * exposure
        coefficients = np.linalg.solve(weighted @ X + np.eye(X.shape[1]), weighted @ plain)
        options |= {"predicted": np.clip(X @ coefficients, 0.0, 1.0), "examination": LOOKS}
    return off_policy.relevance_from_clicks(rankings, clicks, exposure, **options)


def ndcg_of_each(train_set, test_set, policy, sessions, seed):
    """Return NDCG@10 of the ranker trained with each estimate, on a log of some sessions under a policy."""
    (X, labels, offsets), (X_test, labels_test, offsets_test) = train_set, test_set
    rng = np.random.default_rng([sessions, seed])
    chances = plr.gains(labels) / plr.gains([labels.max()])
    few = offsets[: min(21, offsets.size)]
    part = slice(0, few[-1])
    logging = POLICIES[policy] * (X @ train(X[part], chances[part], few, steps=20))
    rows = max(1, round(sessions / (offsets.size - 1)))
    rankings = plr.sample_rankings(logging, rows, CUTOFF, offsets=offsets, rng=rng)
    if rows == 1:  # fewer sessions than queries
        rankings[rng.random(len(rankings)) > sessions / len(rankings)] = -1
    clicks = off_policy.simulate_clicks(rankings, chances, LOOKS, offsets=offsets, rng=rng)
    result = []
    for estimate in ESTIMATES:
        relevance = relevance_by(estimate, rankings, clicks, X, chances, logging, offsets, rng)
        scores = X_test @ train(X, relevance, offsets)
        ndcg = plr.ndcg(scores, plr.gains(labels_test), cutoff=CUTOFF, offsets=offsets_test)
        relevant = np.maximum.reduceat(labels_test, offsets_test[:-1]) > 0
        result.append(ndcg[relevant].mean())
    return result


def draw(picture, policies, sessions, ndcg):
    """Draw median and range over seeds, from values of shape (n_policies, n_sizes, n_seeds, n_estimates)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (4 * len(policies) + 2, 4)
    figure, row = plt.subplots(1, len(policies), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for axes, policy, of_policy in zip(row[0], policies, ndcg, strict=True):
        for column, name in enumerate(ESTIMATES):
            values = of_policy[:, :, column]
            line = axes.plot(sessions, np.median(values, axis=1), label=name)[0]
            axes.fill_between(sessions, values.min(axis=1), values.max(axis=1), alpha=0.2, color=line.get_color())
        axes.set(xscale="log", xlabel="sessions in the log", title=f"logging policy: {policy}")
    row[0, 0].set_ylabel("NDCG@10 of held-out queries")
    figure.legend(*row[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(ESTIMATES))
    figure.savefig(picture, dpi=150)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", type=Path, help="LETOR files; a generated set by default")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--sessions", nargs="+", type=int, default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=200, help="queries of the generated set")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(arguments)
    data = load_letor(options.data) if options.data else generate("mslr", n_queries=options.queries, seed=0)
    X, labels, offsets = (
        np.asarray(data.features, dtype=np.float64),
        np.asarray(data.labels, dtype=np.float64),
        data.offsets,
    )
    filled = np.diff(offsets) > 0
    offsets = np.append(offsets[:-1][filled], offsets[-1])
    X = standardized(X, offsets)
    third = 2 * (offsets.size - 1) // 3
    cut = offsets[third]
    train_set = X[:cut], labels[:cut], offsets[: third + 1]
    test_set = X[cut:], labels[cut:], offsets[third:] - cut
    ndcg = np.array([
        [
            [ndcg_of_each(train_set, test_set, policy, sessions, seed) for seed in range(options.seeds)]
            for sessions in options.sessions
        ]
        for policy in options.policies
    ])  # fmt: skip
    for policy, medians in zip(options.policies, np.median(ndcg, axis=2), strict=True):
        print(f"NDCG@10, median over seeds, logging policy: {policy}")
        print("sessions".rjust(10), *(name.rjust(18) for name in ESTIMATES))
        for sessions, row in zip(options.sessions, medians, strict=True):
            print(f"{sessions:10d}", *(f"{value:18.4f}" for value in row))
    if options.picture:
        draw(options.picture, options.policies, options.sessions, ndcg)
    return ndcg


if __name__ == "__main__":
    main()
