/* Rankings by drawing with replacement from a table of slots and skipping items that are already placed.
 *
 * Items share a line of slots in proportion to their weights. 16 bits of a random word choose a slot, 16 others a place
 * in it. A slot belongs to one item, or is cut once, between an item and the next: an entry is (item << 16) + 2^16 -
 * cut, so that adding the place carries into the item after the cut. Place and cut tie once in 65536 draws, and a slot
 * that is cut more than once names only the first of its items: such draws are decided on the line itself, with 52 more
 * random bits.
 */
#include "sampling/groups/group_samplers.h"
#include "sampling/race.h"
#include "sampling/repeats.h"

#define SLOTS_AT_ONCE 32 /* filling writes so many at once */
#define MOST_COMPARED 192 /* rows of draws: a slow race then completes the rankings */

typedef struct {
    group_query query;
    int slot_bits;
    size_t first_rows;   /* drawn before the first check whether they suffice; an even number */
    uint32_t *slots;     /* (2^slot_bits + SLOTS_AT_ONCE + 1,), see above */
    double *ends;        /* (n_items,) where each item's share of the line of slots ends, in 2^-16 of a slot */
    uint32_t *draws;     /* (MOST_COMPARED, 16) */
    uint32_t *doubled;   /* likewise */
    double *arrivals;    /* (cutoff,) for the race that finishes a ranking */
} slot_table;

/* Return the log of the best number of slots: more slots leave fewer draws undecided, and take longer to fill. With
 * twelve slots for each of 316 items, 0.03 % of the draws are undecided at a standard deviation of 1, and 2 % at 3,
 * where twice as many slots still save a fifth of the time. */
static int bits_of_slots(size_t n_items, int peaked)
{
    const size_t wanted = (peaked ? 24 : 12) * n_items;
    int bits = 8;
    while ((size_t)1 << bits < wanted && bits < 16)
        bits++;
    return bits;
}

static size_t lay_out(slot_table *table, uintptr_t memory, size_t n_items, size_t cutoff, int slot_bits)
{
    uintptr_t next = memory;
    plr_take(&next, sizeof *table);
    table->slots = plr_take(&next, (((size_t)1 << slot_bits) + SLOTS_AT_ONCE + 1) * sizeof(uint32_t));
    table->ends = plr_take(&next, n_items * sizeof(double));
    table->draws = plr_take(&next, MOST_COMPARED * PLR_GROUP_SIZE * sizeof(uint32_t));
    table->doubled = plr_take(&next, MOST_COMPARED * PLR_GROUP_SIZE * sizeof(uint32_t));
    table->arrivals = plr_take(&next, cutoff * sizeof(double));
    return next - memory;
}

static size_t size(size_t n_items, size_t cutoff)
{
    slot_table table;
    const size_t few = n_items < PLR_SLOT_ITEMS ? n_items : PLR_SLOT_ITEMS;
    return lay_out(&table, 0, few, cutoff < few ? cutoff : few, bits_of_slots(few, 1));
}

#define UNDECIDED (UINT32_C(1) << 31) /* an entry with it says that the draw is one of the items from this one on */

static void fill_slots(slot_table *table)
{
    const size_t n = table->query.n_items, line = (size_t)1 << (table->slot_bits + 16);
    const double scale = (double)line / table->query.total;
    uint32_t *slots = table->slots;
    double end = 0.0;
    size_t next = 0;
    uint32_t owner = 0; /* item at the start of the last slot that is cut */
    for (size_t d = 0; d < n; d++) {
        end += table->query.weights[d] * scale;
        table->ends[d] = end;
        size_t stop = (size_t)(int64_t)end;
        stop = stop < line && d + 1 < n ? stop : line;
        const size_t last = stop >> 16;
        /* writes a fixed number at once, which the next item overwrites: few items have more slots, and no branch
         * depends on their number */
        for (size_t i = next; i == next || i <= last; i += SLOTS_AT_ONCE)
            for (size_t j = 0; j < SLOTS_AT_ONCE; j++)
                slots[i + j] = (uint32_t)d << 16;
        const uint32_t cut_before = -(uint32_t)(last < next); /* a mask: of a peaked list, a branch would be a guess */
        const uint32_t cut = UINT32_C(0x10000) - (uint32_t)(stop & 0xffff);
        owner = (owner & cut_before) | ((uint32_t)d & ~cut_before);
        slots[last] = (owner << 16) + ((UNDECIDED & cut_before) | (cut & ~cut_before));
        next = last + 1;
    }
}

static void prepare(void *table_, const group_query *query)
{
    slot_table *table = table_;
    table->slot_bits = bits_of_slots(query->n_items, query->draws_per_item > 1.5);
    lay_out(table, (uintptr_t)table, query->n_items, query->cutoff, table->slot_bits);
    table->query = *query;
    fill_slots(table);
    /* Half of the groups take another round. The cost depends little on the choice: anything from the mean to three
     * deviations more costs the same within 10 %. */
    double rows = (double)query->cutoff > query->mean_draws ? (double)query->cutoff : query->mean_draws;
    rows = smaller(rows + 1.5 * query->deviation + 2.0, MOST_COMPARED);
    table->first_rows = (size_t)rows / 2 * 2;
}

/* Return the item at a draw's place on the line; `at` is the entry plus the place. On average over draws, few items
 * share a slot. */
static uint32_t look_up_item(const slot_table *table, uint32_t word, uint32_t at, uint64_t bits)
{
    const uint32_t slot = word >> (32 - table->slot_bits), last = (uint32_t)table->query.n_items - 1;
    const double position = (double)(slot << 16 | (word & 0xffff)) + ((double)(bits >> 12) + 0.5) * 0x1p-52;
    uint32_t item = (at & ~UNDECIDED) >> 16;
    item -= item > 0 && at << 16 == 0; /* at a tie the draw may be before the cut */
    while (item < last && table->ends[item] <= position)
        item++;
    return item;
}

/* Decide the undecided draws of one row: 0.03 % for 316 items at a standard deviation of 1, 2 % at 3. */
static __attribute__((noinline)) void decide(const slot_table *table, const plr_lanes *step, uint32_t undecided,
                                             uint64_t salt, uint64_t first_sample, size_t row, uint32_t *items)
{
    uint32_t words[PLR_GROUP_SIZE];
    memcpy(words, step, sizeof words);
    for (; undecided != 0; undecided &= undecided - 1) {
        const int i = __builtin_ctz(undecided);
        const uint64_t number = (first_sample + (uint64_t)i) << 32 | row;
        const uint32_t at = table->slots[words[i] >> (32 - table->slot_bits)] + (words[i] & 0xffff);
        items[i] = look_up_item(table, words[i], at, plr_mix64(salt + number * PLR_GOLDEN_RATIO));
    }
}

/* Draw rows of items, numbered from first_row in their rankings. */
static void draw_table_rows(slot_table *table, plr_stream_state *state, size_t first_row, size_t n_rows, uint64_t salt,
                      uint64_t first_sample, uint32_t *draws)
{
    const int shift = 32 - table->slot_bits;
    const uint32_t *slots = table->slots;
    for (size_t row = 0; row < n_rows; row++) {
        plr_lanes step = plr_stream_step_32(state);
        uint32_t undecided = 0;
        for (int part = 0; part < PLR_STREAM_PARTS; part++) {
            vec_u32 word = (vec_u32)step.part[part];
            vec_u32 at = vec_gather(slots, word >> shift) + (word & 0xffff);
            undecided |= vec_signs((vec_i32)(at << 16 == 0) | (vec_i32)at) << part * PLR_LANES_32;
            store_draws(draws + part * PLR_LANES_32, row, at >> 16);
        }
        if (__builtin_expect(undecided != 0, 0))
            decide(table, &step, undecided, salt, first_sample, first_row + row, draws + row * PLR_GROUP_SIZE);
    }
}

/* Draw and compare rows until every ranking is complete, or MOST_COMPARED rows; n_placed gets the ranks drawn. */
static void place_rows(slot_table *table, plr_stream_state *state, uint64_t salt, uint64_t first_sample,
                       int32_t *columns, size_t *n_placed)
{
    const size_t cutoff = table->query.cutoff;
    uint32_t repeats[PLR_GROUP_SIZE] = {0}, most = 0;
    size_t row = 0, stop = table->first_rows;
    do {
        draw_table_rows(table, state, row, stop - row, salt, first_sample, table->draws + row * PLR_GROUP_SIZE);
        tag_repeats(table->draws, table->doubled, row, stop, repeats);
        row = stop;
        for (int i = 0; i < PLR_GROUP_SIZE; i++)
            most = repeats[i] > most ? repeats[i] : most;
        stop = row;
        if (row < cutoff + most)
            stop += (size_t)((double)(cutoff + most - row) * table->query.draws_per_item + 1.0) / 2 * 2;
        stop = stop < MOST_COMPARED ? stop : MOST_COMPARED;
    } while (row < stop);
    for (int i = 0; i < PLR_GROUP_SIZE; i++)
        n_placed[i] = row - repeats[i];
    close_gaps(table->draws, row, most, cutoff, columns);
}

static void draw_group(void *table_, plr_stream *stream, uint64_t salt, uint64_t first_sample, size_t n_lanes,
                       int32_t *columns)
{
    slot_table *table = table_;
    (void)n_lanes;
    size_t n_placed[PLR_GROUP_SIZE];
    plr_stream_state state = plr_stream_load(stream);
    place_rows(table, &state, salt, first_sample, columns, n_placed);
    plr_stream_store(stream, &state);
    for (size_t i = 0; i < PLR_GROUP_SIZE; i++)
        if (__builtin_expect(n_placed[i] < table->query.cutoff, 0))
            finish_by_race(&table->query, n_placed[i], salt, first_sample + i, table->arrivals, columns + i);
}

const slot_table_kernels ISA(slot_table_kernels) = {size, prepare, draw_group};
