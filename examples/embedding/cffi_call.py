"""Call the table of functions through cffi, and one function by its name."""

import numpy as np
from cffi import FFI

import plrank_fast as plr
from plrank_fast import embedding

ffi = FFI()
ffi.cdef(embedding.declarations())
plrank = ffi.cast("const plrank_api *", embedding.table_address())
constants = ffi.dlopen(None)  # those that the declarations define


def doubles(array):
    return ffi.from_buffer("double[]", array)


def check():
    rng = np.random.default_rng(0)
    scores, relevance, theta = rng.normal(size=24), rng.random(24), plr.dcg_weights(5)

    # PL-Rank-3 in two slices of whole blocks gives the estimate of one call: the stream continues between them.
    gradients, slices = np.empty((2, 24)), np.array([384, 116])
    key = plr.stream_key(11)
    stream = ffi.new("char[]", plrank.stream_size())
    assert plrank.stream_init(stream, len(stream), int(key[0]), int(key[1]), 0) == 0
    workspace = ffi.new("char[]", plrank.pl_rank_3_workspace(24, 5, 500))
    for gradient, n_samples in zip(gradients, slices, strict=True):
        status = plrank.pl_rank_3(
            stream, doubles(scores), doubles(relevance), 24, doubles(theta), 5, n_samples, constants.PLRANK_NETWORK,
            ffi.NULL, 0, doubles(gradient), ffi.NULL, workspace, len(workspace),
        )  # fmt: skip
        assert status == 0, ffi.string(plrank.strerror(status))
    whole = plr.pl_rank_3(scores, relevance, theta, n_samples=500, sampler="network", rng=11)
    assert np.allclose(slices @ gradients / 500, whole, rtol=0, atol=1e-14)
    first = plr.pl_rank_3(scores, relevance, theta, n_samples=384, sampler="network", rng=11)
    assert np.array_equal(gradients[0], first)

    # by name, without the table
    dcg = ffi.cast(
        "int32_t (*)(const double *, const double *, int64_t, const double *, int64_t, double *, void *, int64_t)",
        embedding.function_address("plrank_dcg"),
    )
    value = np.empty(1)
    args = doubles(scores), doubles(relevance), 24, doubles(theta), 5, doubles(value), workspace, len(workspace)
    assert dcg(*args) == 0
    assert np.array_equal(value, plr.dcg(scores, relevance, theta))
    print("cffi_call: slices and whole agree, equal to the last bit")


if __name__ == "__main__":
    check()
