#!/usr/bin/env bash
# LightGBM 4.7.0: a set whose features cannot be split is trained by name of the objective, and refused with a function.
#
# Two queries of 20 documents have one feature with 40 values. No bin leaves 20 documents (min_data_in_leaf) on both
# sides, so LightGBM drops the feature. With "lambdarank" it trains a constant tree. With a function that returns the
# same number of gradients, the first round ends with an internal check, "(train_data->num_features()) > (0)", which
# names neither the feature nor the parameter. With min_data_in_leaf=5 both train.
# Exit status 0: the behaviour is as described.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install -q lightgbm==4.7.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
env/bin/python - <<'PYTHON'
import lightgbm
import numpy as np

features, grades = np.arange(40.0).reshape(40, 1), np.arange(40) % 3


def squared_error(scores, dataset):
    return scores - dataset.get_label(), np.ones_like(scores)


def train(objective, least):
    parameters = {"objective": objective, "min_data_in_leaf": least, "metric": "None", "verbosity": -1}
    dataset = lightgbm.Dataset(features, grades, group=[20, 20], params={"min_data_in_leaf": least})
    try:
        model = lightgbm.train(parameters, dataset, 1)
    except lightgbm.basic.LightGBMError as error:
        return str(error).partition(" at ")[0]
    return f"{np.unique(model.predict(features)).size} values"


found = {least: (train("lambdarank", least), train(squared_error, least)) for least in (20, 5)}
for least, (by_name, by_function) in found.items():
    print(f"min_data_in_leaf={least}: lambdarank {by_name}; a function {by_function}")
assert found[20] == ("1 values", "Check failed: (train_data->num_features()) > (0)")
assert all(each.endswith("values") and each != "1 values" for each in found[5])
PYTHON
