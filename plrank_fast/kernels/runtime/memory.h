/* Memory for workspaces, some of which is kept for the next calls. */
#ifndef PLR_MEMORY_H
#define PLR_MEMORY_H

#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define PLR_SPARES 8
#define PLR_UNUSED 256 /* blocks that so many later ones did without are freed */

/* Blocks that are kept, the last one first. The first two words of each hold its size and how many were kept before.
 * Threads exchange them atomically, so that a single one has a block at a time. */
typedef struct {
    size_t *block[PLR_SPARES];
    size_t bytes; /* size of all together */
    size_t kept;  /* number of blocks since the process began */
} spare_blocks;

static inline size_t *plr_exchange_spare(spare_blocks *spares, int i, size_t *block)
{
    const size_t added = block != NULL ? block[0] : 0;
    size_t *const before = __atomic_exchange_n(&spares->block[i], block, __ATOMIC_ACQ_REL);
    const size_t removed = before != NULL ? before[0] : 0;
    if (added != removed)
        __atomic_fetch_add(&spares->bytes, added - removed, __ATOMIC_RELAXED);
    return before;
}

static inline void plr_free_unused(spare_blocks *spares, size_t kept)
{
    for (int i = 0; i < PLR_SPARES; i++) {
        size_t *block = plr_exchange_spare(spares, i, NULL);
        if (block != NULL && kept - block[1] < PLR_UNUSED)
            block = plr_exchange_spare(spares, i, block);
        free(block);
    }
}

/* Keep a block, and free the oldest ones if all together have more than `most` bytes. */
static inline void plr_keep(spare_blocks *spares, size_t *block, size_t most)
{
    const size_t kept = block[1] = __atomic_fetch_add(&spares->kept, 1, __ATOMIC_RELAXED);
    if (kept % PLR_UNUSED == 0)
        plr_free_unused(spares, kept);
    for (int i = 0; i < PLR_SPARES && block != NULL; i++)
        block = plr_exchange_spare(spares, i, block);
    free(block);
    for (int i = PLR_SPARES - 1; i >= 0 && __atomic_load_n(&spares->bytes, __ATOMIC_RELAXED) > most; i--)
        free(plr_exchange_spare(spares, i, NULL));
}

/* Return a block of at least `size` bytes, or NULL if there is none. One that is much larger is left for others.
 *
 * Large blocks are allocated on huge pages if the system grants them: without them, the gradient of one query of a
 * million documents spends a third of its time on page faults, and takes twice as long. */
static inline size_t *plr_allocate(spare_blocks *spares, size_t size)
{
    for (int i = 0; i < PLR_SPARES; i++) {
        size_t *block = __atomic_load_n(&spares->block[i], __ATOMIC_RELAXED);
        if (block == NULL)
            continue; /* a block before this one is in use */
        block = plr_exchange_spare(spares, i, NULL);
        if (block != NULL && block[0] >= size && block[0] / 2 <= size + ((size_t)1 << 17))
            return block;
        free(plr_exchange_spare(spares, i, block)); /* another thread has kept this one meanwhile */
    }
    size_t *memory = malloc(size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const size_t page = (size_t)4 << 10;
    if (memory != NULL && size >= (size_t)8 << 20) {
        size_t skipped = (page - (size_t)memory % page) % page;
        madvise((char *)memory + skipped, (size - skipped) / page * page, MADV_HUGEPAGE);
    }
#endif
    if (memory != NULL)
        memory[0] = size;
    return memory;
}

#endif
