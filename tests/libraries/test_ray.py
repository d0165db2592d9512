"""Ray Train: two workers grow XGBoost's trees of one process from queries that the function cuts by rank.

Features have fewer values than XGBoost has bins, as in the tests of Spark. Ray's own shards cut queries.
"""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.train.xgboost", reason="ray is not installed; `make test-all` installs it")

import ray
import xgboost

from plrank_fast.xgboost import Objective

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]  # Ray's own, of many kinds


@pytest.fixture(scope="module")
def recipe():
    """The functions that the documentation shows."""
    blocks = re.findall(r"^```py\n(.*?)^```$", (ROOT / "docs" / "scaling.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [each for each in blocks if "XGBoostTrainer" in each]
    names = {"__name__": "recipe"}
    exec(compile(block, "docs/scaling.md", "exec"), names)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield names
    ray.shutdown()


@pytest.fixture
def given(tmp_path, monkeypatch):
    monkeypatch.setattr("ray.train.constants.DEFAULT_STORAGE_PATH", str(tmp_path))
    rng = np.random.default_rng(0)
    lengths = np.array([12] * 30 + [150] * 10)
    X = np.rint(10 * rng.normal(size=(lengths.sum(), 5))) / 10
    y = np.clip(np.rint(X[:, 0] + X[:, 1] ** 2 / 2 + rng.normal(size=len(X)) / 2), 0, 4)
    parameters = {"learning_rate": 0.3, "max_depth": 3, "base_score": 0.0, "nthread": 1}
    offsets = np.append(0, np.cumsum(lengths))
    return {"X": X, "y": y, "offsets": offsets, "parameters": parameters, "path": str(tmp_path / "model.ubj")}


def test_two_workers_grow_the_trees_of_one_process(recipe, given):
    """Sampled gradients, whose streams are numbered through the queries of both. Mutants: the chunks of another rank;
    streams from 0 on each worker; groups of all queries."""
    given["objective"] = {"method": "cmc"}
    recipe["fit"](given)
    whole = xgboost.DMatrix(given["X"], given["y"])
    whole.set_group(np.diff(given["offsets"]))
    expected = xgboost.train(given["parameters"], whole, 8, obj=Objective(method="cmc"))
    found = xgboost.Booster(model_file=given["path"])
    assert expected.predict(whole).std() > 0.05
    np.testing.assert_allclose(found.predict(whole), expected.predict(whole), rtol=1e-5, atol=1e-5)


def test_a_worker_that_dies_ends_the_job(recipe, given):
    """Mutant: the error of a worker taken for its end."""

    def gain(labels):  # of the objective, in the worker with the highest grade of short lists
        raise RuntimeError("no gain")

    given["objective"] = {"gain": gain}
    with pytest.raises(Exception, match="no gain"):
        recipe["fit"](given)
    assert not Path(given["path"]).exists()
