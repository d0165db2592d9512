"""Keys of random streams, 128 bits for each call, made from the usual sources of randomness in half a microsecond.

The keys are the same as from ``validation.stream_key``. A generator gives two draws through NumPy's C interface, under
its lock: the numbers that ``integers(0, 2**64, 2, dtype=uint64)`` returns for any bit generator. A seed gives two words
of a ``SeedSequence``, whose algorithm NumPy guarantees not to change. Fresh entropy comes from the system.
"""

import os

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from plrank_fast._core.runtime.scalar_types cimport uint64_t

cdef extern from *:
    """
    /* The struct that the capsule of a bit generator points to (numpy/random/bitgen.h). */
    typedef struct {
        void *state;
        uint64_t (*next_uint64)(void *state);
        uint32_t (*next_uint32)(void *state);
        double (*next_double)(void *state);
        uint64_t (*next_raw)(void *state);
    } plr_bit_generator;

    /* The two words that a SeedSequence makes of 128 bits of entropy (M. E. O'Neill's seed_seq_fe, 2015). */
    static inline uint32_t plr_hash_word(uint32_t value, uint32_t *constant, uint32_t factor)
    {
        value ^= *constant;
        *constant *= factor;
        value *= *constant;
        return value ^ value >> 16;
    }

    static void plr_seed_key(const uint32_t *entropy, uint64_t *key)
    {
        uint32_t pool[4], constant = 0x43b0d7e5u, word[4];
        for (int i = 0; i < 4; i++)
            pool[i] = plr_hash_word(entropy[i], &constant, 0x931e8875u);
        for (int from = 0; from < 4; from++)
            for (int to = 0; to < 4; to++)
                if (from != to) {
                    uint32_t hashed = plr_hash_word(pool[from], &constant, 0x931e8875u);
                    uint32_t mixed = 0xca01f9ddu * pool[to] - 0x4973f715u * hashed;
                    pool[to] = mixed ^ mixed >> 16;
                }
        constant = 0x8b51f9ddu;
        for (int i = 0; i < 4; i++)
            word[i] = plr_hash_word(pool[i], &constant, 0x58f38dedu);
        key[0] = word[0] | (uint64_t)word[1] << 32;
        key[1] = word[2] | (uint64_t)word[3] << 32;
    }
    """
    ctypedef struct plr_bit_generator:
        void *state
        uint64_t (*next_uint64)(void *state) noexcept nogil
    void plr_seed_key(const uint32_t *entropy, uint64_t *key) nogil

cdef object GENERATOR = np.random.Generator, BIT_GENERATOR = np.random.BitGenerator, URANDOM = os.urandom
cdef object LARGEST_SEED = 2**128 - 1


cdef bint draw_plain_key(object rng, uint64_t *key) except -1:
    """Fill ``key`` (2,) and return True if ``rng`` is a Generator, a BitGenerator, a seed below 2**128, or None.

    Otherwise (a SeedSequence, a subclass of Generator, or an invalid value) draw nothing and return False.
    """
    cdef plr_bit_generator *generator
    cdef uint32_t entropy[4]
    cdef bytes fresh
    if type(rng) is GENERATOR:
        rng = rng.bit_generator
    if isinstance(rng, BIT_GENERATOR):
        generator = <plr_bit_generator *>PyCapsule_GetPointer(rng.capsule, "BitGenerator")
        lock = rng.lock
        lock.acquire()  # a with statement takes longer, and nothing here can raise
        key[0] = generator.next_uint64(generator.state)
        key[1] = generator.next_uint64(generator.state)
        lock.release()
        return True
    if rng is None:
        fresh = URANDOM(16)
        memcpy(key, <const char *>fresh, 16)
        return True
    if type(rng) is not int or not 0 <= rng <= LARGEST_SEED:
        return False
    for i in range(4):
        entropy[i] = rng >> 32 * i & 0xFFFFFFFF
    plr_seed_key(entropy, key)
    return True


cdef int draw_key(object rng, uint64_t *key) except -1:
    """Fill ``key`` (2,) from what ``validation.source_of_keys`` returned: such a source, or a key."""
    cdef const uint64_t[::1] words
    if not draw_plain_key(rng, key):
        words = rng
        key[0], key[1] = words[0], words[1]
    return 0


def stream_key(rng):
    """Return the key as an array (2,), or None if ``draw_plain_key`` returns False."""
    words = np.empty(2, dtype=np.uint64)
    cdef uint64_t[::1] key = words
    return words if draw_plain_key(rng, &key[0]) else None


cpdef bint is_plain_source(object rng):
    """Return whether ``draw_plain_key`` draws from it."""
    return (
        rng is None or type(rng) is GENERATOR or isinstance(rng, BIT_GENERATOR)
        or (type(rng) is int and 0 <= rng <= LARGEST_SEED))
