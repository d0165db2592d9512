"""Every function gives the same numbers at each SIMD level that this machine has, and samplers the same rankings."""

import numpy as np

import plrank_fast as plr
from programs import run_python

PROGRAM = """
import sys
import numpy as np
import plrank_fast as plr
from problems import ragged
from public_calls import BATCHES, arrays
from plrank_fast._core.sampling.samplers import SAMPLER_NAMES
assert plr.build_info()["simd"] == sys.argv[2]
scores, relevance, _, offsets = ragged([6, 120, 1, 33, 300])
results = {}
for cutoff in (3, 100):
    rank_weights = np.tile(plr.dcg_weights(cutoff), (5, 1))
    for name, call in BATCHES.items():
        for i, array in enumerate(arrays(call(scores, relevance, rank_weights, offsets=offsets))):
            results[f"{name}, {cutoff} ranks, {i}"] = array
rng = np.random.default_rng(6)
for n_docs, cutoff in [(5, 5), (24, 10), (120, 25), (128, 128), (316, 40), (1000, 1000), (6000, 20)]:
    for spread in (0.5, 3.0):
        scores = spread * rng.normal(size=n_docs)
        for sampler in SAMPLER_NAMES:
            options = {"rng": 1, "sampler": sampler, "offsets": [0, n_docs]}
            name = f"{n_docs}-{cutoff}-{spread}-{sampler}"
            # 16 bits of a clock are left in the keys of 1000 items: near ties abound
            n_samples = 3000 if cutoff == 1000 and sampler == "network" else 130
            results["sample_rankings " + name] = plr.sample_rankings(scores, n_samples, cutoff, **options)
            problem = scores, np.arange(n_docs) % 5, plr.dcg_weights(cutoff)
            results["pl_rank_3 " + name] = plr.pl_rank_3(*problem, n_samples=130, **options)
np.savez(sys.argv[1], **results)
"""


def test_levels_agree(tmp_path):
    """Rankings to the bit, quadratures to a thousandth of their tolerance, other results to rounding.

    A quadrature leaves out terms that are negligible at all nodes of a vector, and longer vectors hold more nodes.
    Mutants: lanes of a narrower register mixed up; exponentials of one level off by 1e-11; near ties left as they are,
    which makes float32 rounding of a level visible.
    """
    results = []
    in_use = "import plrank_fast as plr; print(plr.build_info()['simd'], end='')"
    for level in plr.build_info()["simd_levels"]:
        if run_python(in_use, PLRANK_FAST_SIMD=level) != level:  # the processor has no such instructions
            continue
        path = tmp_path / f"{level}.npz"
        run_python(PROGRAM, str(path), level, PLRANK_FAST_SIMD=level)
        results.append(np.load(path))
    for result in results[1:]:
        for name, expected in results[0].items():
            scale = 0.0 if name.startswith("sample_rankings") else max(1.0, np.abs(expected).max())
            tolerance = 1e-9 if name.startswith(("pl_rank_exact", "expected_metric", "expected_ap")) else 2e-12
            np.testing.assert_allclose(result[name], expected, rtol=0, atol=tolerance * scale, err_msg=name)
