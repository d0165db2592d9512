r"""
Exposure of a fair policy
=========================

A query has eight documents, three of them almost equally good. A policy trained for the expected metric alone nearly
always ranks the best one first, which then receives nearly all the attention of the first rank. A policy that is also
trained to lower the disparity of exposure shows every document almost in proportion to its merit, and
``scores_for_exposure`` finds the scores that show it exactly so.
"""

import matplotlib.pyplot as plt
import numpy as np

import plrank_fast as plr
from plrank_fast import fairness

merit = np.array([1.0, 0.95, 0.9, 0.5, 0.4, 0.3, 0.2, 0.1])
attention = plr.dcg_weights(4)


def trained(weight_of_fairness, rate, steps=600):
    """Return the scores after gradient ascent on the utility minus ``weight_of_fairness`` times the disparity."""
    scores = np.zeros(merit.size)
    for _ in range(steps):
        utility = plr.pl_rank_exact(scores, merit, attention)
        _, disparity = fairness.disparity_gradient(scores, merit, attention)
        scores += rate * (utility - weight_of_fairness * disparity)
    return scores


proportional = merit / merit.sum() * attention.sum()
policies = {
    "utility alone": trained(0.0, rate=1.0),
    "utility and fairness": trained(100.0, rate=0.3),
    "prescribed exposure": plr.scores_for_exposure(proportional, attention),
}

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
places = np.arange(merit.size)
for shift, (name, scores) in zip((-0.27, 0.0, 0.27), policies.items(), strict=True):
    exposure = plr.exposure(scores, attention)
    disparity = fairness.disparity(exposure, merit)[0][0]
    axes.bar(places + shift, exposure, width=0.25, label=f"{name} (disparity {disparity:.1e})")
axes.plot(places, proportional, "k_", markersize=40, markeredgewidth=1.5, label="in proportion to merit")
axes.set_xticks(places, [f"{value:g}" for value in merit])
axes.set(xlabel="merit of the document", ylabel="expected exposure")
axes.legend(frameon=False, loc="upper right", handlelength=3)

# %%
# Fairness has a cost. These are the expected metrics of the policies over the metric of the best ranking:

best = plr.ideal_dcg(merit, attention)[0]
for name, scores in policies.items():
    print(f"{name:<22}{plr.expected_metric(scores, merit, attention)[0] / best:.3f}")
