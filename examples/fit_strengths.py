"""Fit strengths to simulated rankings, and compare estimates and time with choix if it is installed.

    python examples/fit_strengths.py --items 1000 --rankings 20000 --length 5

Every program has its turn in each round, and the least processor time counts. With ``--tied 2``, places are tied in
pairs, which choix does not know.
"""

import argparse
import time

import numpy as np

import plrank_fast as plr

try:
    import choix
except ImportError:
    choix = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("items", 100), ("rankings", 2000), ("length", 5), ("tied", 1), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    true = rng.normal(size=options.items)
    compared = [rng.choice(options.items, options.length, replace=False) for _ in range(options.rankings)]
    rankings = [items[np.argsort(-true[items] - rng.gumbel(size=items.size))] for items in compared]
    buckets = np.tile(np.arange(options.length) // options.tied, options.rankings)
    offsets = options.length * np.arange(options.rankings + 1)
    programs = {"plrank_fast": lambda: plr.fit_strengths(np.concatenate(rankings), buckets, offsets)}
    if choix is not None and options.tied == 1:
        data = [tuple(items.tolist()) for items in rankings]
        programs["choix.ilsr_rankings"] = lambda: choix.ilsr_rankings(options.items, data)
        programs["choix.opt_rankings"] = lambda: choix.opt_rankings(options.items, data, tol=1e-8)
    times, results = {name: [] for name in programs}, {}
    for _ in range(options.rounds):
        for name, program in programs.items():
            begin = time.process_time()
            results[name] = program()
            times[name].append(time.process_time() - begin)
    fit = results.pop("plrank_fast")
    errors = (fit.strengths - true + true.mean()) / fit.standard_errors
    print(f"mean squared error in squared standard errors: {np.mean(errors**2):.2f}")
    for name, strengths in results.items():
        ratio = min(times[name]) / min(times["plrank_fast"])
        difference = np.abs(strengths - strengths.mean() - fit.strengths).max()
        print(f"{name}: {ratio:.1f} times as long, largest difference {difference:.0e}")


if __name__ == "__main__":
    main()
