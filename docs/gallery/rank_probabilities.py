r"""
Where a policy puts each document
=================================

A Plackett-Luce policy is a distribution over all rankings. ``rank_probabilities`` computes the exact probability of
each document at each rank: eight documents have 40,320 rankings, yet none is drawn.

The picture shows the same scores divided by three temperatures. A colder policy is closer to sorting by score, and a
hotter one is closer to a random order.
"""

import matplotlib.pyplot as plt
import numpy as np

import plrank_fast as plr

scores = np.array([3.0, 2.5, 2.4, 1.0, 0.5, 0.0, -0.5, -2.0])
ranks = np.arange(1, scores.size + 1)

figure, panels = plt.subplots(1, 3, figsize=(10, 4), sharey=True, layout="constrained")
for panel, temperature in zip(panels, (0.25, 1.0, 4.0), strict=True):
    probabilities = plr.rank_probabilities(scores / temperature, cutoff=scores.size)
    image = panel.imshow(probabilities, vmin=0.0, vmax=1.0, cmap="viridis")
    panel.set_xticks(ranks - 1, ranks)
    panel.set_yticks(np.arange(scores.size), [f"{score:+.1f}" for score in scores])
    panel.set(xlabel="rank", title=f"temperature {temperature:g}")
panels[0].set_ylabel("document, by its score")
figure.colorbar(image, ax=panels, label="probability", shrink=0.8)

# %%
# Every document has a rank, and every rank has a document, so all rows and all columns sum to 1:

np.testing.assert_allclose(probabilities.sum(axis=0), 1.0)
np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)

# %%
# The sum of a row with the weight of each rank is the document's *exposure*, which ``exposure`` returns:

theta = plr.dcg_weights(scores.size)
np.testing.assert_allclose(probabilities @ theta, plr.exposure(scores / temperature, theta))
