/* A uniformly random permutation of n items (Fisher and Yates, inside out). */
#ifndef PLR_SHUFFLE_H
#define PLR_SHUFFLE_H

#include "random/random_stream.h"

#define PLR_WORDS_AT_ONCE (2 * PLR_STREAM_LANES)

/* 32-bit words of a stream, which is advanced by one step of all its lanes at a time. */
typedef struct {
    plr_stream *stream;
    uint32_t words[PLR_WORDS_AT_ONCE];
    int next;
} plr_words;

static inline uint32_t plr_next_word(plr_words *source)
{
    if (source->next == PLR_WORDS_AT_ONCE) {
        uint64_t drawn[PLR_STREAM_LANES];
        plr_stream_next(source->stream, drawn);
        for (int lane = 0; lane < PLR_STREAM_LANES; lane++) {
            source->words[2 * lane] = (uint32_t)drawn[lane];
            source->words[2 * lane + 1] = (uint32_t)(drawn[lane] >> 32);
        }
        source->next = 0;
    }
    return source->words[source->next++];
}

/* Return a number that is uniform on 0 .. bound - 1, without bias (Lemire, 2019): the words that would make some
 * numbers likelier than others are rejected. */
static inline uint32_t plr_uniform_below(plr_words *source, uint32_t bound)
{
    uint64_t product = (uint64_t)plr_next_word(source) * bound;
    if ((uint32_t)product < bound) {
        uint32_t refused = -bound % bound;
        while ((uint32_t)product < refused)
            product = (uint64_t)plr_next_word(source) * bound;
    }
    return (uint32_t)(product >> 32);
}

/* Fill `items` with 0 .. n - 1 in random order. */
static inline void plr_shuffle(plr_stream *stream, int32_t *items, size_t n)
{
    plr_words source = {.stream = stream, .next = PLR_WORDS_AT_ONCE};
    for (size_t i = 0; i < n; i++) {
        uint32_t place = plr_uniform_below(&source, (uint32_t)i + 1);
        items[i] = items[place];
        items[place] = (int32_t)i;
    }
}

#endif
