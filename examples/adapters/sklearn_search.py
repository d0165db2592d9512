"""Train a ranker of scikit-learn on scaled features, with a penalty from cross-validation over whole queries.

python examples/adapters/sklearn_search.py
"""

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from plrank_fast.sklearn import PlackettLuceRanker


def queries(n_queries=60, seed=0):
    """Make features of different scales, grades, and the query of each document."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(3, 16, size=n_queries))
    features = rng.normal(size=(qid.size, 6))
    grades = np.clip(np.rint(features[:, 0] - features[:, 1] + rng.normal(size=qid.size) / 2), 0, 3)
    return features * [1, 10, 100, 1, 10, 100], grades, qid


def main():
    X, y, qid = queries()
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = PlackettLuceRanker(cutoff=10).set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), ranker),
            {"plackettluceranker__alpha": [1e-4, 1e-2, 1.0]},
            cv=GroupKFold(5),
        )
        search.fit(X, y, qid=qid, groups=qid)  # groups: no query is split
    best = search.best_estimator_
    print(best[-1].sample_rankings(best[0].transform(X[:8]), n_samples=2, cutoff=3, qid=qid[:8], random_state=0))
    return search.best_score_


if __name__ == "__main__":
    print(f"NDCG@10 of queries left out: {main():.3f}")
