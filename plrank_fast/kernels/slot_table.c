#include "slot_table.h"

#include <math.h>

#include "clock_keys.h"
#include "race.h"

#define HALF 8 /* rankings whose positions stay in registers */
#define UNROLL _Pragma("GCC unroll 8")

static void prepare(slot_table *table, size_t n_samples)
{
    const size_t n = table->n_items;
    size_t used = 0;
    double left_over = 0.0;
    table->n_slots = plr_slot_count(n, table->cutoff, n_samples);
    table->most_rows = plr_slot_rows(table->cutoff);
    const double per_weight = (double)table->n_slots / table->total;
    for (size_t d = 0; d < n; d++) {
        double share = table->weights[d] * per_weight;
        size_t whole = (size_t)share;
        left_over += share - (double)whole;
        table->left_over[d] = left_over;
        if (whole > table->n_slots - used)
            whole = table->n_slots - used;
        /* 64 at a time, then over them: few items have more, and no branch depends on how many; a query
         * of 316 items and 16 samples takes 3.5 us, with 16 at a time 6.3 */
        for (size_t i = 0; i == 0 || i < whole; i += 64)
            for (size_t j = 0; j < 64; j++)
                table->slots[used + i + j] = (uint16_t)d;
        used += whole;
    }
    for (size_t i = used; i < table->n_slots; i++)
        table->slots[i] = (uint16_t)n;
    /* four entries at a time, then over them: an item seldom spans more, and no branch depends on how many it does */
    const double per_entry = (double)n / left_over;
    for (size_t d = 0, entry = 0; d < n && entry < n; d++) {
        size_t stop = d + 1 < n ? (size_t)(table->left_over[d] * per_entry) + 1 : n;
        stop = stop < n ? stop : n;
        for (size_t j = entry; j < stop; j += 4)
            for (size_t e = 0; e < 4; e++)
                table->guide[j + e] = (uint16_t)d;
        entry = stop;
    }
    memset(table->stamps, 0, n * PLR_LOCKSTEP);
    table->group = 0;
}

static uint64_t fresh_bits(uint64_t salt, uint64_t sample, uint64_t number)
{
    return plr_mix64(salt + (sample << 32 | number) * UINT64_C(0x9e3779b97f4a7c15));
}

/* An item in proportion to what its whole slots leave over: one step from the guide on average. 1 draw in 30 or fewer
 * comes here. */
static __attribute__((noinline)) size_t draw_left_over(const slot_table *table, uint64_t bits)
{
    const size_t last = table->n_items - 1;
    double share = ((double)(bits >> 11) + 0.5) * 0x1p-53;
    size_t item = table->guide[(size_t)(share * (double)table->n_items)];
    while (item < last && table->left_over[item] <= share * table->left_over[last])
        item++;
    return item;
}

/* Finish one ranking, n of whose items are placed, by clocks of the others. */
static void finish_by_race(slot_table *table, uint64_t salt, uint64_t sample, size_t lane, size_t n, int32_t *columns)
{
    race r = {table->clocks, columns + n * PLR_LOCKSTEP + lane, table->cutoff - n, 0};
    for (size_t d = 0; d < table->n_items; d++) {
        if (table->stamps[(lane / HALF * table->n_items + d) * HALF + lane % HALF] == table->group)
            continue;
        uint64_t bits = fresh_bits(~salt, sample, d);
        enter_race(&r, exact_exponential((uint32_t)(bits >> 32), bits, sample, d) / table->weights[d], (int32_t)d);
    }
}

/* Draws [row, stop) of eight rankings: each writes its item behind those placed, and is placed unless it already was.
 * No branch depends on that. `ends` are the places behind, in multiples of PLR_LOCKSTEP. */
PLR_INLINE void place_rows(slot_table *table, size_t row, size_t stop, uint64_t salt, uint64_t first_sample,
                           size_t lane, int32_t *columns, size_t *ends)
{
    const uint16_t *slots = table->slots;
    const size_t n_items = table->n_items;
    const uint8_t group = table->group;
    uint8_t *stamps = table->stamps + lane * n_items;
    size_t end[HALF];
    columns += lane;
    UNROLL
    for (int i = 0; i < HALF; i++)
        end[i] = ends[i];
    for (; row < stop; row++) {
        const uint16_t *words = table->words + row * PLR_LOCKSTEP + lane;
        UNROLL
        for (int i = 0; i < HALF; i++) {
            size_t item = slots[words[i]];
            if (__builtin_expect(item == n_items, 0))
                item = draw_left_over(table, fresh_bits(salt, first_sample + lane + i, row));
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

static void draw_group(slot_table *table, plr_stream *stream, uint64_t salt, uint64_t first_sample, int32_t *columns)
{
    const size_t full = table->cutoff * PLR_LOCKSTEP;
    const uint64_t mask = (table->n_slots - 1) * UINT64_C(0x0001000100010001);
    size_t ends[PLR_LOCKSTEP] = {0};
    if (++table->group == 0) {
        memset(table->stamps, 0, table->n_items * PLR_LOCKSTEP);
        table->group = 1;
    }
    plr_stream_state state = plr_stream_load(stream);
    size_t row = 0, least = 0;
    while (least < full && row < table->most_rows) {
        /* a step of the stream holds two draws of each ranking; as many as are missing at least */
        size_t stop = row + ((full - least) / PLR_LOCKSTEP + 1) / 2 * 2;
        for (size_t i = row; i < stop; i += 2) {
            plr_lanes step = plr_stream_step(&state);
            for (int part = 0; part < PLR_STREAM_PARTS; part++)
                step.part[part] &= mask;
            memcpy(table->words + i * PLR_LOCKSTEP, &step, sizeof step);
        }
        place_rows(table, row, stop, salt, first_sample, 0, columns, ends);
        place_rows(table, row, stop, salt, first_sample, HALF, columns, ends + HALF);
        least = ends[0];
        for (int i = 1; i < PLR_LOCKSTEP; i++)
            least = ends[i] < least ? ends[i] : least;
        row = stop;
    }
    plr_stream_store(stream, &state);
    if (least < full)
        for (size_t lane = 0; lane < PLR_LOCKSTEP; lane++)
            if (ends[lane] < full)
                finish_by_race(table, salt, first_sample + lane, lane, ends[lane] / PLR_LOCKSTEP, columns);
}

const slot_table_kernels ISA(slot_table_kernels) = {prepare, draw_group};
