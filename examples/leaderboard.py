"""Fit an arena as people do and as it is: draws as half wins, or with a probability; position and judges, or not.

    python examples/leaderboard.py --repetitions 200

The truth is the fit to forty times as many battles by judges of their own. ``main`` prints, for each fit, by how much
its strengths are spread beside the truth, the error of the model that is shown first most often, and how many of its
intervals of 95 % hold the truth.
"""

import argparse

import numpy as np

import plrank_fast as plr

MODELS, FAVOURED = 20, 9  # one model, of middling strength, is shown first in four of five of its battles
TRUE = np.linspace(1.5, -1.5, MODELS)


def battles(n_battles, n_judges, rng):
    """Return the judges of battles, the models shown first and second, and results: 0, 1 or 2, a draw."""
    judge = rng.integers(0, n_judges, n_battles)
    one = rng.integers(0, MODELS, n_battles)
    other = (one + rng.integers(1, MODELS, n_battles)) % MODELS
    exchanged = (other == FAVOURED) & (rng.random(n_battles) < 0.6) | (one == FAVOURED) & (rng.random(n_battles) < 0.2)
    one, other = np.where(exchanged, other, one), np.where(exchanged, one, other)
    taste, order = 0.7 * rng.normal(size=(n_judges, MODELS)), 0.4 + 0.7 * rng.normal(size=n_judges)
    gap = TRUE[one] - TRUE[other] + taste[judge, one] - taste[judge, other] + order[judge]
    log_weights = np.stack([0.5 * gap, -0.5 * gap, np.full(n_battles, -0.45)])
    return judge, one, other, (log_weights + rng.gumbel(size=log_weights.shape)).argmax(axis=0)


def fit(judge, one, other, result, *, ties="davidson", position=True, covariance="observed"):
    """Fit the strengths of one arena."""
    kept = result < 2 if ties == "dropped" else np.full(result.size, True)
    items = np.column_stack([one, other])[kept].reshape(-1)
    places = np.column_stack([result == 1, result == 0])[kept].astype(int).reshape(-1)
    first = np.tile([1.0, 0.0], np.count_nonzero(kept)) if position else None
    return plr.fit_strengths(
        items, places, 2 * np.arange(items.size // 2 + 1), comparison_features=first, covariance=covariance,
        ties="unknown" if ties == "dropped" else ties, clusters=judge[kept] if covariance == "clustered" else None,
    )  # fmt: skip


FITS = {
    "half wins, position ignored": {"ties": "half", "position": False},
    "draws dropped, position ignored": {"ties": "dropped", "position": False},
    "Davidson, position ignored": {"position": False},
    "Davidson and position": {},
    "the same, clustered by judge": {"covariance": "clustered"},
}


def main(arguments=None):
    """Print the table, and return its rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("repetitions", 20), ("battles", 50_000), ("judges", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--picture", help="file to draw the leaderboard of the first arena to, with intervals of ranks")
    options = parser.parse_args(arguments)
    if options.picture:
        arena = battles(options.battles, options.judges, np.random.default_rng(1))
        fit(*arena, covariance="clustered").plot(ranks="simultaneous").savefig(options.picture, dpi=80)
    truth = fit(*battles(40 * options.battles, 40 * options.judges, np.random.default_rng(0))).strengths
    rows = {name: [] for name in FITS}
    for seed in range(1, options.repetitions + 1):
        arena = battles(options.battles, options.judges, np.random.default_rng(seed))
        for name, choices in FITS.items():
            fitted = fit(*arena, **choices)
            low, high = fitted.intervals().T
            slope = fitted.strengths @ truth / (truth @ truth)
            error = fitted.strengths[FAVOURED] - truth[FAVOURED]
            rows[name].append((slope, error, ((low < truth) & (truth < high)).mean()))
    for name, values in rows.items():
        rows[name] = np.mean(values, axis=0)
        print(f"{name:34s}" + "".join(f"{value:9.3f}" for value in rows[name]), flush=True)
    return rows


if __name__ == "__main__":
    main()
