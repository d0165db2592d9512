/* Items are the leaves of trees with two levels of nodes, sixteen children to a node, and PLR_TREE_ITEMS items to a
 * tree. A draw uses one word of 64 bits. Its upper half is a point on the line of all trees, which the guide looks up;
 * 16 bits each are a point on the line of the root and on that of the node below it. One comparison of integers counts
 * the children that end before a point. If a child ends within the unit that was drawn, once in thousands of draws,
 * more bits place the point, and weights in double precision decide on which side of the end it lies. So each item has
 * its probability to the rounding of doubles, from two bytes of memory.
 *
 * Item 16 k + j of a tree is child k of node j, so that vectors sum neighbouring nodes without shuffles, in the same
 * order at every SIMD level.
 *
 * A draw waits for memory only once, for half a line of leaves, which it prefetches before other draws take their turn:
 * 7 ns a draw at 1e4 and 1e5 items, 9 at 1e6, without a pass over the items.
 */
#include "sampling/guide_table.h"

#include "sampling/race.h"
#include "simd/vectors.h"

#define CHILDREN PLR_NODE_CHILDREN
#define TREE_ITEMS PLR_TREE_ITEMS
#define PORTION 128 /* draws */

/* ------------------------------------------------------------------------------------------------------------------
 * The table
 * --------------------------------------------------------------------------------------------------------------- */

static const double *weights_of_tree(const guide_table *table, size_t tree)
{
    return tree + 1 < table->n_trees ? table->weights + tree * TREE_ITEMS : table->last;
}

/* Return where children end, in units of 2^-16 of the node. The total may be 0, after the last item; the last child
 * ends where the node does. */
PLR_INLINE vec_half_i32 units(vec_f64 end, vec_f64 total)
{
    vec_f64 units = end * (1.0 / vec_max_f64(total, vec_all(0x1p-1022))) * 65536.0;
    return __builtin_convertvector(vec_min_f64(units, vec_all(65535.0)), vec_half_i32) - 32768;
}

typedef PLR_VECTOR(int16_t, 16) eight;

/* Transpose 8 x 8 numbers by three perfect shuffles. */
static void transpose_eight(const int16_t (*from)[CHILDREN], int16_t (*to)[CHILDREN])
{
    eight rows[8], mixed[8];
    PLR_UNROLL
    for (int i = 0; i < 8; i++)
        memcpy(rows + i, from[i], sizeof *rows);
    PLR_UNROLL
    for (int round = 0; round < 3; round++) {
        PLR_UNROLL
        for (int i = 0; i < 4; i++) {
            mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        PLR_UNROLL
        for (int i = 0; i < 8; i++)
            rows[i] = mixed[i];
    }
    PLR_UNROLL
    for (int i = 0; i < 8; i++)
        memcpy(to[i], rows + i, sizeof *rows);
}

/* Fill the leaves of one tree and sum its nodes. */
static void fill_leaves(const double *weights, int16_t (*leaves)[CHILDREN], double *sums)
{
    int32_t wide[CHILDREN][CHILDREN];
    int16_t narrow[CHILDREN][CHILDREN];
    for (size_t j = 0; j < CHILDREN; j += PLR_LANES) {
        vec_f64 ends[CHILDREN], sum = {0};
        PLR_UNROLL
        for (size_t k = 0; k < CHILDREN; k++)
            ends[k] = sum += vec_load(weights + k * CHILDREN + j);
        vec_store(sums + j, sum);
        PLR_UNROLL
        for (size_t k = 0; k < CHILDREN; k++) {
            vec_half_i32 end = units(ends[k], sum);
            memcpy(&wide[k][j], &end, sizeof end);
        }
    }
    for (size_t k = 0; k < CHILDREN; k++)
        for (size_t j = 0; j < CHILDREN; j++)
            narrow[k][j] = k + 1 < CHILDREN ? (int16_t)wide[k][j] : INT16_MAX;
    for (size_t k = 0; k < CHILDREN; k += 8)
        for (size_t j = 0; j < CHILDREN; j += 8)
            transpose_eight((const int16_t (*)[CHILDREN])&narrow[k][j], (int16_t (*)[CHILDREN])&leaves[j][k]);
}

static void add_up(const double *weights, size_t stride, double *ends)
{
    double sum = 0.0;
    for (size_t k = 0; k < CHILDREN; k++)
        ends[k] = sum += weights[k * stride];
}

static void fill_guide(guide_table *table)
{
    const double total = table->cumulative[table->n_trees];
    const int shift = 32 - table->guide_bits;
    for (size_t tree = 0; tree < table->n_trees + PLR_ENDS_AT_ONCE; tree++) {
        double end = tree + 1 < table->n_trees ? table->cumulative[tree + 1] / total * 0x1p32 : 0x1p32;
        table->ends[tree] = (int32_t)((int64_t)smaller(end, 0x1p32 - 1.0) - ((int64_t)1 << 31));
    }
    uint32_t tree = 0;
    for (int64_t j = 0; j < (int64_t)1 << table->guide_bits; j++) {
        while (table->ends[tree] < (j << shift) - ((int64_t)1 << 31))
            tree++;
        table->guide[j] = tree;
    }
}

static void prepare(guide_table *table)
{
    const size_t n_trees = plr_guide_trees(table->n_items), in_last = table->n_items - (n_trees - 1) * TREE_ITEMS;
    table->n_trees = n_trees;
    table->guide_bits = plr_guide_bits(table->n_items);
    memset(table->last, 0, TREE_ITEMS * sizeof(double));
    memcpy(table->last, table->weights + (n_trees - 1) * TREE_ITEMS, in_last * sizeof(double));
    double before = table->cumulative[0] = 0.0;
    for (size_t tree = 0; tree < n_trees; tree++) {
        double sums[CHILDREN], ends[CHILDREN];
        int32_t root[CHILDREN];
        int16_t (*leaves)[CHILDREN] = (int16_t (*)[CHILDREN])table->leaves + tree * CHILDREN;
        fill_leaves(weights_of_tree(table, tree), leaves, sums);
        add_up(sums, 1, ends);
        for (size_t j = 0; j < CHILDREN; j += PLR_LANES) {
            vec_half_i32 end = units(vec_load(ends + j), vec_all(ends[CHILDREN - 1]));
            memcpy(root + j, &end, sizeof end);
        }
        for (size_t j = 0; j < CHILDREN; j++)
            table->roots[tree * CHILDREN + j] = j + 1 < CHILDREN ? (int16_t)root[j] : INT16_MAX;
        table->cumulative[tree + 1] = before += ends[CHILDREN - 1];
    }
    fill_guide(table);
    memset(table->seen, 0, sizeof *table->seen << table->seen_bits);
    table->ranking = 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Draws
 * --------------------------------------------------------------------------------------------------------------- */

/* Return further random bits of a draw, different ones for each level. */
static double uniform(uint64_t word, uint64_t salt, uint64_t level)
{
    return ((double)(plr_mix64(word ^ plr_mix64(salt + level)) >> 11) + 0.5) * 0x1p-53;
}

/* Return the child at a point of a node, given where children end; never a child of weight 0. */
static size_t child_at(const double *ends, double at)
{
    size_t child = 0;
    while (ends[child] <= at && ends[child] < ends[CHILDREN - 1])
        child++;
    return child;
}

static __attribute__((noinline)) size_t tree_at(const guide_table *table, uint64_t word, uint64_t salt)
{
    const double total = table->cumulative[table->n_trees];
    const double at = ((double)(word >> 32) + uniform(word, salt, 0)) * 0x1p-32 * total;
    size_t tree = table->guide[word >> (64 - table->guide_bits)];
    while (table->cumulative[tree + 1] <= at && table->cumulative[tree + 1] < total)
        tree++;
    return tree;
}

static __attribute__((noinline)) size_t node_at(const guide_table *table, size_t tree, uint64_t word, uint64_t salt)
{
    const double *weights = weights_of_tree(table, tree);
    double sums[CHILDREN], ends[CHILDREN];
    for (size_t j = 0; j < CHILDREN; j++) {
        add_up(weights + j, CHILDREN, ends);
        sums[j] = ends[CHILDREN - 1];
    }
    add_up(sums, 1, ends);
    const double at = (double)((int16_t)(word >> 16) + 32768) + uniform(word, salt, 1);
    return child_at(ends, at * 0x1p-16 * ends[CHILDREN - 1]);
}

static __attribute__((noinline)) size_t leaf_at(const guide_table *table, size_t node, uint64_t word, uint64_t salt)
{
    double ends[CHILDREN];
    add_up(weights_of_tree(table, node / CHILDREN) + node % CHILDREN, CHILDREN, ends);
    const double at = (double)((int16_t)word + 32768) + uniform(word, salt, 2);
    return child_at(ends, at * 0x1p-16 * ends[CHILDREN - 1]);
}

/* Look up the items of n draws, at most PORTION. */
PLR_INLINE void draw_items(const guide_table *table, const uint64_t *words, size_t n, uint64_t salt, int32_t *items)
{
    const int32_t *all_ends = table->ends;
    const uint32_t *guide = table->guide;
    const int16_t *roots = table->roots, *leaves = table->leaves;
    const int shift = 64 - table->guide_bits;
    for (size_t i = 0; i < n; i++) {
        const uint64_t word = words[i];
        const int32_t point = (int32_t)(uint32_t)((word >> 32) ^ 0x80000000);
        size_t tree = guide[word >> shift], passed;
        while ((passed = vec_below_i32(all_ends + tree, point)) == PLR_ENDS_AT_ONCE)
            tree += PLR_ENDS_AT_ONCE;
        tree += passed;
        if (__builtin_expect(all_ends[tree] == point, 0))
            tree = tree_at(table, word, salt);
        const int16_t *root = roots + tree * CHILDREN;
        size_t node = vec_below_i16(root, (int16_t)(word >> 16));
        if (__builtin_expect(root[node] == (int16_t)(word >> 16), 0))
            node = node_at(table, tree, word, salt);
        node += tree * CHILDREN;
        items[i] = (int32_t)node;
        __builtin_prefetch(leaves + node * CHILDREN);
    }
    for (size_t i = 0; i < n; i++) {
        const int16_t point = (int16_t)words[i];
        const size_t node = (size_t)items[i];
        const int16_t *leaf = leaves + node * CHILDREN;
        size_t child = vec_below_i16(leaf, point);
        if (__builtin_expect(leaf[child] == point, 0))
            child = leaf_at(table, node, words[i], salt);
        items[i] = (int32_t)((node / CHILDREN * CHILDREN + child) * CHILDREN + node % CHILDREN);
    }
}

static void look_up(const guide_table *table, const uint64_t *words, size_t n, uint64_t salt, int32_t *items)
{
    for (size_t first = 0; first < n; first += PORTION)
        draw_items(table, words + first, n - first < PORTION ? n - first : PORTION, salt, items + first);
}

/* Draw n items from the stream. */
static void draw_next(const guide_table *table, plr_stream *stream, size_t n, uint64_t salt, int32_t *items)
{
    for (size_t first = 0; first < n; first += PORTION) {
        const size_t length = n - first < PORTION ? n - first : PORTION;
        uint64_t words[PORTION];
        plr_stream_state state = plr_stream_load(stream);
        for (size_t i = 0; i < length; i += PLR_STREAM_LANES) {
            plr_lanes step = plr_stream_step(&state);
            memcpy(words + i, &step, sizeof step);
        }
        plr_stream_store(stream, &state);
        draw_items(table, words, length, salt, items + first);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Rankings
 * --------------------------------------------------------------------------------------------------------------- */

/* Return whether an item is new to the current ranking, and mark it as seen. */
PLR_INLINE int see(guide_table *table, int32_t item)
{
    const uint64_t entry = table->ranking << 32 | (uint32_t)item;
    const size_t mask = ((size_t)1 << table->seen_bits) - 1;
    size_t at = (size_t)((uint32_t)item * UINT32_C(2654435769)) >> (32 - table->seen_bits);
    for (; table->seen[at] >> 32 == table->ranking; at = (at + 1) & mask)
        if (table->seen[at] == entry)
            return 0;
    table->seen[at] = entry;
    return 1;
}

/* Place the new items among n draws, after `placed` ranks; return the number of ranks placed by then. */
PLR_INLINE size_t place(guide_table *table, const int32_t *items, size_t n, size_t placed, int32_t *column)
{
    for (size_t i = 0; i < n && placed < table->cutoff; i++) {
        column[placed * PLR_GROUP_SIZE] = items[i];
        placed += (size_t)see(table, items[i]);
    }
    return placed;
}

/* Draw the further items that one ranking needs, from words of its own, which do not depend on other rankings. */
static size_t place_more(guide_table *table, uint64_t salt, uint64_t sample, size_t placed, int32_t *column)
{
    enum { AT_ONCE = 8 };
    const uint64_t own = plr_mix64(salt ^ PLR_GOLDEN_RATIO) + (sample << 32);
    for (size_t drawn = 0; drawn < 8 * table->cutoff + 64 && placed < table->cutoff; drawn += AT_ONCE) {
        uint64_t words[AT_ONCE];
        int32_t items[AT_ONCE];
        for (size_t i = 0; i < AT_ONCE; i++)
            words[i] = plr_mix64((own + drawn + i) * PLR_GOLDEN_RATIO);
        draw_items(table, words, AT_ONCE, salt, items);
        placed = place(table, items, AT_ONCE, placed, column);
    }
    return placed;
}

static void draw_group(guide_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns)
{
    const size_t at_first = table->draws_at_first;
    draw_next(table, stream, n_lanes * at_first, salt, table->items);
    for (size_t lane = 0; lane < n_lanes; lane++) {
        table->ranking++;
        size_t placed = place(table, table->items + lane * at_first, at_first, 0, columns + lane);
        if (placed < table->cutoff)
            placed = place_more(table, salt, first_sample + lane, placed, columns + lane);
        if (placed < table->cutoff)
            finish_by_race(table->weights, table->n_items, placed, table->cutoff, salt, first_sample + lane,
                           table->arrivals, columns + lane);
    }
}

const guide_table_kernels ISA(guide_table_kernels) = {prepare, draw_group, look_up};
