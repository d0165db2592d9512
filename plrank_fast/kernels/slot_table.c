/* Items share a line of slots in proportion to their weights. 16 bits of a random word pick a slot, 16 others a place
 * in it. A slot belongs to one item, or is cut once, between an item and the next: an entry is (item << 16) + 2^16 -
 * cut, so that adding the place carries into the item behind the cut. In either case place and cut tie once in 65536
 * draws, and slots that are cut more than once decide nothing: such draws are looked up on the line itself, with 52
 * more random bits.
 */
#include "slot_table.h"

#include "race.h"
#include "repeats.h"

#define UNDECIDED UINT32_C(0xffff0000)
#define HALF 8 /* rankings whose positions stay in registers */
#define UNROLL _Pragma("GCC unroll 8")

static void fill_slots(slot_table *table)
{
    const size_t n = table->n_items, line = (size_t)1 << (table->slot_bits + 16);
    const double scale = (double)line / table->total;
    uint32_t *slots = table->slots;
    double end = 0.0;
    size_t next = 0;
    for (size_t d = 0; d < n; d++) {
        end += table->weights[d] * scale;
        table->ends[d] = end;
        size_t stop = (size_t)(int64_t)end;
        stop = stop < line && d + 1 < n ? stop : line;
        const size_t last = stop >> 16;
        /* so many at once, then over them: few items have more, and no branch depends on how many */
        for (size_t i = next; i == next || i <= last; i += PLR_SLOTS_AT_ONCE)
            for (size_t j = 0; j < PLR_SLOTS_AT_ONCE; j++)
                slots[i + j] = (uint32_t)d << 16;
        /* cut again if the item before ends here too */
        slots[last] = last < next ? UNDECIDED : ((uint32_t)d << 16) + (UINT32_C(0x10000) - (stop & 0xffff));
        next = last + 1;
    }
}

static void prepare(slot_table *table, size_t n_samples)
{
    table->slot_bits = plr_slot_bits(table->n_items, table->cutoff, n_samples);
    fill_slots(table);
    table->most_rows = plr_slot_rows(table->cutoff);
    /* Half of the groups take another round. What that takes, and how much more the first takes if it is longer, is
     * little: anything from the mean to three deviations more costs the same within 10 % */
    double rows = (double)table->cutoff > table->mean_draws ? (double)table->cutoff : table->mean_draws;
    rows += 1.5 * table->deviation + 2.0;
    table->first_rows = rows < PLR_MOST_COMPARED ? (size_t)rows / 2 * 2 : PLR_MOST_COMPARED + 2;
    if (table->first_rows > PLR_MOST_COMPARED) {
        memset(table->stamps, 0, table->n_items * PLR_LOCKSTEP);
        table->group = 0;
    }
}

/* The item at a draw's place on the line. */
static __attribute__((noinline)) uint32_t look_up(const slot_table *table, uint32_t word, uint64_t bits)
{
    const uint32_t slot = word >> (32 - table->slot_bits);
    const double at = (double)(slot << 16 | (word & 0xffff)) + ((double)(bits >> 12) + 0.5) * 0x1p-52;
    size_t first = 0;
    for (size_t n = table->n_items - 1; n > 0;) {
        size_t half = (n + 1) / 2;
        first += table->ends[first + half - 1] <= at ? half : 0;
        n -= half;
    }
    return (uint32_t)first;
}

/* Rows of items, numbered from first_row in their ranking. */
static void draw_rows(slot_table *table, plr_stream_state *state, size_t first_row, size_t n_rows, uint64_t salt,
                      uint64_t first_sample, uint32_t *draws)
{
    const int shift = 32 - table->slot_bits;
    const uint32_t *slots = table->slots;
    for (size_t row = 0; row < n_rows; row++) {
        plr_lanes step = plr_stream_step(state);
        vec_i32 undecided = {0};
        for (int part = 0; part < PLR_STREAM_PARTS; part++) {
            vec_u32 word = (vec_u32)step.part[part];
            vec_u32 at = vec_gather(slots, word >> shift) + (word & 0xffff);
            undecided |= (vec_i32)(at << 16 == 0) | (vec_i32)at >> 31;
            store_draws(draws + part * PLR_LANES_32, row, at >> 16);
        }
        if (__builtin_expect(vec_any(undecided), 0)) {
            uint32_t words[PLR_LOCKSTEP];
            memcpy(words, &step, sizeof words);
            for (size_t i = 0; i < PLR_LOCKSTEP; i++) {
                uint32_t at = slots[words[i] >> shift] + (words[i] & 0xffff);
                const uint64_t number = (first_sample + i) << 32 | (first_row + row);
                if (at << 16 == 0 || at >= UNDECIDED)
                    draws[row * PLR_LOCKSTEP + i] =
                        look_up(table, words[i], plr_mix64(salt + number * UINT64_C(0x9e3779b97f4a7c15)));
            }
        }
    }
}

/* Draw and compare rows until every ranking is complete, or PLR_MOST_COMPARED; ranks that are drawn go to n_placed. */
static void place_by_comparison(slot_table *table, plr_stream_state *state, uint64_t salt, uint64_t first_sample,
                                int32_t *columns, size_t *n_placed)
{
    const size_t cutoff = table->cutoff;
    uint32_t repeats[PLR_LOCKSTEP] = {0}, most = 0;
    size_t row = 0, stop = table->first_rows;
    do {
        draw_rows(table, state, row, stop - row, salt, first_sample, table->draws + row * PLR_LOCKSTEP);
        tag_repeats(table->draws, table->twins, row, stop, repeats);
        row = stop;
        for (int i = 0; i < PLR_LOCKSTEP; i++)
            most = repeats[i] > most ? repeats[i] : most;
        stop = (cutoff + most + 1) / 2 * 2;
        stop = stop < PLR_MOST_COMPARED ? stop : PLR_MOST_COMPARED;
    } while (row < stop);
    for (int i = 0; i < PLR_LOCKSTEP; i++)
        n_placed[i] = row - repeats[i];
    close_gaps(table->draws, row, most, cutoff, columns);
}

/* n rows of draws of eight rankings: each writes its item behind those placed, and is placed unless it already was. No
 * branch depends on that. `ends` are the places behind, in multiples of PLR_LOCKSTEP. */
PLR_INLINE void place_rows(slot_table *table, size_t n, size_t lane, int32_t *columns, size_t *ends)
{
    const uint8_t group = table->group;
    uint8_t *stamps = table->stamps + lane * table->n_items;
    size_t end[HALF];
    columns += lane;
    UNROLL
    for (int i = 0; i < HALF; i++)
        end[i] = ends[i];
    for (size_t row = 0; row < n; row++) {
        const uint32_t *items = table->draws + row * PLR_LOCKSTEP + lane;
        UNROLL
        for (int i = 0; i < HALF; i++) {
            uint32_t item = items[i];
            uint8_t *stamp = stamps + item * HALF + i;
            columns[end[i] + i] = (int32_t)item;
            end[i] += *stamp != group ? PLR_LOCKSTEP : 0;
            *stamp = group;
        }
    }
    UNROLL
    for (int i = 0; i < HALF; i++)
        ends[i] = end[i];
}

/* Draw rows and note in memory what is placed, until every ranking is complete or most_rows are drawn. */
static void place_by_stamps(slot_table *table, plr_stream_state *state, uint64_t salt, uint64_t first_sample,
                            int32_t *columns, size_t *n_placed)
{
    const size_t full = table->cutoff * PLR_LOCKSTEP;
    size_t ends[PLR_LOCKSTEP] = {0}, row = 0, least = 0;
    if (++table->group == 0) {
        memset(table->stamps, 0, table->n_items * PLR_LOCKSTEP);
        table->group = 1;
    }
    while (least < full && row < table->most_rows) {
        size_t n_rows = (full - least) / PLR_LOCKSTEP; /* are missing at least */
        draw_rows(table, state, row, n_rows, salt, first_sample, table->draws);
        place_rows(table, n_rows, 0, columns, ends);
        place_rows(table, n_rows, HALF, columns, ends + HALF);
        least = ends[0];
        for (int i = 1; i < PLR_LOCKSTEP; i++)
            least = ends[i] < least ? ends[i] : least;
        row += n_rows;
    }
    for (int i = 0; i < PLR_LOCKSTEP; i++)
        n_placed[i] = ends[i] / PLR_LOCKSTEP;
}

static void draw_group(slot_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, int32_t *columns)
{
    size_t n_placed[PLR_LOCKSTEP];
    plr_stream_state state = plr_stream_load(stream);
    if (table->first_rows <= PLR_MOST_COMPARED)
        place_by_comparison(table, &state, salt, first_sample, columns, n_placed);
    else
        place_by_stamps(table, &state, salt, first_sample, columns, n_placed);
    plr_stream_store(stream, &state);
    for (size_t i = 0; i < PLR_LOCKSTEP; i++)
        if (__builtin_expect(n_placed[i] < table->cutoff, 0))
            finish_by_race(table->weights, table->n_items, n_placed[i], table->cutoff, salt, first_sample + i,
                           table->clocks, columns + i);
}

const slot_table_kernels ISA(slot_table_kernels) = {prepare, draw_group};
