"""The random streams of calls in NumPy: SplitMix64 seeds eight lanes of xoshiro256++ from (key, query, block)."""

import numpy as np

U64 = np.uint64


def mix(z):
    """The output function of SplitMix64."""
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


def splitmix_words(seeds, n):
    """The first ``n`` outputs of SplitMix64 from each seed, along a new last axis."""
    return mix(np.asarray(seeds, dtype=U64)[..., np.newaxis] + U64(0x9E3779B97F4A7C15) * np.arange(1, n + 1, dtype=U64))


def xoshiro_words(state, steps):
    """The outputs of xoshiro256++ from ``state``, four words along the first axis; steps are the first axis."""
    a, b, c, d = state
    words = np.empty((steps, *a.shape), dtype=U64)
    for word in words:
        total = a + d
        word[...] = (total << U64(23) | total >> U64(41)) + a
        c, d, shifted = c ^ a, d ^ b, b << U64(17)
        a, b, c = a ^ d, b ^ c, c ^ shifted
        d = d << U64(45) | d >> U64(19)
    return words


def first_state(key, query, blocks):
    """The state (4, ..., 8) that begins the stream of each block: each word mixes an output of two chains."""
    query, blocks = np.asarray(query, dtype=U64), np.asarray(blocks, dtype=U64)
    first = splitmix_words(splitmix_words(key[0], 1)[0] ^ query, 1)[..., 0] ^ blocks
    second = splitmix_words(splitmix_words(key[1], 1)[0] ^ blocks, 1)[..., 0] ^ query
    outputs = mix(splitmix_words(first, 32) + splitmix_words(second, 32))
    return np.moveaxis(outputs.reshape(*blocks.shape, 4, 8), -2, 0)


def stream_words(key, query, blocks, steps):
    """The first ``steps`` rows of eight words of the streams of one or more blocks, (steps, ..., 8)."""
    return xoshiro_words(first_state(key, query, blocks), steps)
