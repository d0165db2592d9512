#!/usr/bin/env bash
# obp 0.5.7: SelfNormalizedInverseProbabilityWeighting takes lambda_, the bound of the weights, and does not apply it.
#
# InverseProbabilityWeighting(lambda_=2) clips importance weights at 2. The self-normalised estimator inherits the
# parameter and checks it, but its estimate is the same for each value: a comparison of clipped with self-normalised and
# clipped weights, or a search for the best lambda_, sees one number. Needs Python 3.10, the newest that obp runs on.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.10 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q obp==0.5.7 matplotlib==3.8.4 numpy==1.23.5
cd "$folder"
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
from obp.ope import InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting

actions, rewards, propensities = np.array([0, 1, 2, 0]), np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.1, 0.5, 0.4, 0.2])
policy = np.tile([0.6, 0.3, 0.1], (4, 1))[:, :, np.newaxis]
log = {"reward": rewards, "action": actions, "pscore": propensities, "action_dist": policy}
log["position"] = np.zeros(4, dtype=int)
weights = policy[np.arange(4), actions, 0] / propensities
clipped = np.minimum(weights, 2.0)
found = {
    (kind.__name__, bound): kind(lambda_=bound).estimate_policy_value(**log)
    for kind in (InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting)
    for bound in (np.inf, 2.0)
}
print(found, "self-normalised and clipped:", (clipped * rewards).sum() / clipped.sum())
own, normalized = list(found.values())[:2], list(found.values())[2:]
np.testing.assert_allclose(own, [(weights * rewards).mean(), (clipped * rewards).mean()])
np.testing.assert_allclose(normalized, (weights * rewards).sum() / weights.sum())
PYTHON
