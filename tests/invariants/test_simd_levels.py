"""Every function gives the same numbers at each SIMD level that this machine has, and samplers the same rankings."""

import os
import subprocess
import sys

import numpy as np

import plrank_fast as plr

PROGRAM = """
import sys
import numpy as np
import plrank_fast as plr
from problems import ragged
from public_calls import BATCHES, arrays
assert plr.build_info()["simd"] == sys.argv[2]
scores, relevance, _, offsets = ragged([6, 120, 1, 33, 300])
results = {}
for cutoff in (3, 100):
    rank_weights = np.tile(plr.dcg_weights(cutoff), (5, 1))
    for name, call in BATCHES.items():
        for i, array in enumerate(arrays(call(scores, relevance, rank_weights, offsets=offsets))):
            results[f"{name}, {cutoff} ranks, {i}"] = array
np.savez(sys.argv[1], **results)
"""


def test_levels_agree(tmp_path):
    """Rankings to the bit, quadratures to a thousandth of their tolerance, other results to rounding.

    A quadrature leaves out terms that are negligible at all nodes of a vector, and longer vectors hold more nodes.
    Mutants: lanes of a narrower register mixed up; exponentials of one level off by 1e-11.
    """
    results = []
    for level in plr.build_info()["simd_levels"]:
        path = tmp_path / f"{level}.npz"
        environment = {**os.environ, "PLRANK_FAST_SIMD": level, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", PROGRAM, str(path), level], check=True, env=environment)
        results.append(np.load(path))
    for result in results[1:]:
        for name, expected in results[0].items():
            scale = 0.0 if name.startswith("sample_rankings") else max(1.0, np.abs(expected).max())
            tolerance = (
                1e-9 if name.startswith(("pl_rank_exact", "expected_metric", "expected_average_precision")) else 2e-12
            )
            np.testing.assert_allclose(result[name], expected, rtol=0, atol=tolerance * scale, err_msg=name)
