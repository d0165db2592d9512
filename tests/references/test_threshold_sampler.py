"""The threshold sampler against its definition: the first clocks of all items, in double precision, from the same bits.

A ranking takes sixteen bits of its block's stream for each item. Items whose bits let them ring before the deadline are
its candidates and take sixteen more; for the others these come from a hash, which is made only where the candidates do
not settle the ranking: one in some thousand.
"""

import numpy as np

import plrank_fast as plr
from plrank_fast._core.ranking import weights as _weights
from streams import first_state, mix, stream_words

LANES = 16
BLOCK = 128
U64 = np.uint64


def clocks_of(words, salt, sample, items, weights):
    """Exponential clocks from words of 32 bits, and 32 more of a hash."""
    with np.errstate(over="ignore"):
        number = U64(sample) << U64(32) | items.astype(np.uint64)
        bits = words.astype(np.uint64) << U64(32) | mix(salt + number * U64(0x9E3779B97F4A7C15)) >> U64(32)
    early = -np.log1p(-((~bits).astype(float) + 0.5) * 2.0**-64)
    return np.where(bits >> U64(63) == 1, early, -np.log((bits.astype(float) + 0.5) * 2.0**-64)) / weights


def test_rankings_that_the_candidates_do_not_settle():
    """A third of the items weigh so little that they are candidates by rounding alone, and ring long after the
    deadline.

    Mutants: the last rank not compared with the deadline; the same sixteen bits for all items that are no candidates;
    rankings with too few candidates not drawn again.
    """
    n_docs, n_samples, seed = 3072, 131_072, 4
    scores = np.where(np.arange(n_docs) % 3 == 0, -25.0, 0.0)
    weights = np.exp(scores)
    got = plr.sample_rankings(scores, n_samples, 1, rng=seed, sampler="threshold")[:, 0]
    key = plr.stream_key(seed)
    deadline = _weights.arrival(scores, 1 + 3.3 + 2.0)[0]
    thresholds = np.minimum(np.exp(-weights * deadline) * 2**16, 65535.0).astype(np.uint32)
    late = few = settled = 0
    blocks, steps = np.arange(n_samples // BLOCK), n_docs // 32
    states = first_state(key, 0, blocks)
    salts = mix(states[0, :, 0] + states[1, :, 1])
    for block in blocks:
        if block % 64 == 0:
            streams = stream_words(key, 0, blocks[block : block + 64], (steps * LANES + 2 * LANES) * BLOCK // LANES)
        stream, salt, at = np.ascontiguousarray(streams[:, block % 64]), salts[block], 0
        for group in range(0, BLOCK, LANES):
            words = stream[at : at + steps * LANES].view(np.uint32).reshape(LANES, steps, 16)
            at += steps * LANES
            halves = np.stack([words & 0xFFFF, words >> 16], axis=2).reshape(LANES, n_docs)
            found = halves >= thresholds
            n_found = found.sum(axis=1)
            rows = -(-int(n_found.max()) // LANES)
            more = stream[at : at + rows * LANES].view(np.uint32).reshape(rows, LANES, 16)
            at += rows * LANES
            # bits above a threshold tell that the clock rings before the deadline, whatever the others are
            early = (halves > thresholds).any(axis=1)
            for sample in np.flatnonzero(~early | (block % 32 == 0)):
                candidates = np.flatnonzero(found[sample])
                lower = more[:, sample].ravel()[: candidates.size] & 0xFFFF
                clocks = clocks_of(
                    halves[sample][candidates] << 16 | lower, salt, group + sample, candidates, weights[candidates]
                )
                if clocks.min(initial=np.inf) < deadline:
                    settled += 1
                    expected = candidates[clocks.argmin()]
                else:
                    late += candidates.size > 0
                    few += candidates.size == 0
                    items = np.arange(n_docs)
                    with np.errstate(over="ignore"):
                        number = U64(group + sample) << U64(32) | items.astype(np.uint64)
                        hashed = (mix(~salt + number) >> U64(48)).astype(np.uint32)
                    hashed[candidates] = lower
                    expected = clocks_of(halves[sample] << 16 | hashed, salt, group + sample, items, weights).argmin()
                assert got[block * BLOCK + group + sample] == expected
    assert settled > n_samples / 32 * 0.99
    assert few > 50
    assert late > 2
