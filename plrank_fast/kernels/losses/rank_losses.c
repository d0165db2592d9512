#include "losses/rank_losses.h"

#include <float.h>

#include "simd/vector_math.h"

static double logistic_rank(double score, const double *scores, double *slopes, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 above = vec_load_some(scores + i, n - i, -DBL_MAX) - score;
        vec_f64 e = vec_exp_flush(-vec_abs(above)), inverse = 1.0 / (1.0 + e);
        vec_f64 chance = vec_select(above > 0.0, inverse, e * inverse);
        if (n - i < PLR_LANES)
            for (size_t lane = n - i; lane < PLR_LANES; lane++)
                chance[lane] = 0.0;
        total += chance;
        vec_store_some(slopes + i, e * inverse * inverse, n - i);
    }
    return vec_sum(total);
}

static double add_slopes(double factor, const double *slopes, double *gradient, size_t n)
{
    vec_f64 total = {0};
    for (size_t i = 0; i < n; i += PLR_LANES) {
        vec_f64 share = factor * vec_load_some(slopes + i, n - i, 0.0);
        total += share;
        vec_store_some(gradient + i, vec_load_some(gradient + i, n - i, 0.0) + share, n - i);
    }
    return vec_sum(total);
}

/* State of one register of targets during the pass over all items. The rank distributions p_{i-1} before all items of
 * the current segment are kept; each other segment keeps only that before its first item, from which the backward pass
 * recomputes the others, bit for bit. */
typedef struct {
    const soft_rank_task *task;
    size_t length;    /* items of a segment */
    double steps;     /* since the last check for cancellation */
    vec_f64 *beat;    /* (n,) */
    vec_f64 *density; /* (n,) */
    vec_f64 *firsts;  /* (segments, cutoff) */
    vec_f64 *ranks;   /* (length, cutoff) */
    vec_f64 *a;       /* (cutoff,) */
} soft_rank_pass;

static int cancelled(soft_rank_pass *pass)
{
    pass->steps += (double)pass->task->cutoff;
    if (!pass->task->cancellation_requested || pass->steps < pass->task->steps_per_question)
        return 0;
    pass->steps = 0.0;
    return pass->task->cancellation_requested();
}

/* Each step reads two ranks before it writes them, so `next` may be p. */
PLR_INLINE void place_next(vec_f64 *next, const vec_f64 *p, vec_f64 beat, size_t cutoff)
{
    vec_f64 before = {0};
    size_t r = 0;
    for (; r + 1 < cutoff; r += 2) {
        vec_f64 here = p[r], behind = p[r + 1];
        next[r] = here + beat * (before - here);
        next[r + 1] = behind + beat * (here - behind);
        before = behind;
    }
    if (r < cutoff)
        next[r] = p[r] + beat * (before - p[r]);
}

/* Fill the rows of pass->ranks with the distributions before the items after `first` and before `last`, starting from
 * ranks[0], that before `first`. Both are in one segment. */
static int fill_segment(soft_rank_pass *pass, size_t first, size_t last)
{
    const size_t cutoff = pass->task->cutoff;
    for (size_t i = first; i + 1 < last; i++) {
        vec_f64 *p = pass->ranks + (i - first) * cutoff;
        place_next(p + cutoff, p, pass->beat[i], cutoff);
        if (cancelled(pass))
            return 1;
    }
    return 0;
}

/* Compute the probability that each item beats the targets of a register, and its derivative. No target beats
 * itself. */
static void compare_scores(const soft_rank_pass *pass, const int32_t *targets, size_t n_targets)
{
    const soft_rank_task *task = pass->task;
    vec_f64 own;
    for (size_t t = 0; t < PLR_LANES; t++)
        own[t] = task->scores[targets[t < n_targets ? t : 0]];
    for (size_t i = 0; i < task->n; i++) {
        pass->beat[i] = vec_normal(task->scores[i] - own, &pass->density[i]);
        for (size_t t = 0; t < n_targets; t++)
            if (targets[t] == (int32_t)i)
                pass->beat[i][t] = pass->density[i][t] = 0.0;
    }
}

/* The rank of a target is the number of items that beat it, as if they did so independently: p_i(r) = p_{i-1}(r) (1 -
 * beat_i) + p_{i-1}(r - 1) beat_i. Leaves the distributions of the last segment in pass->ranks; *value gets the sum
 * over ranks of discount times p_n. */
static int place_all(soft_rank_pass *pass, vec_f64 *value)
{
    const size_t n = pass->task->n, cutoff = pass->task->cutoff, length = pass->length;
    const size_t last_first = (n - 1) / length * length;
    for (size_t r = 0; r < cutoff; r++)
        pass->ranks[r] = vec_all(r == 0 ? 1.0 : 0.0);
    for (size_t first = 0; first < last_first; first += length) {
        memcpy(pass->firsts + first / length * cutoff, pass->ranks, cutoff * sizeof *pass->ranks);
        for (size_t i = first; i < first + length; i++) {
            place_next(pass->ranks, pass->ranks, pass->beat[i], cutoff);
            if (cancelled(pass))
                return 1;
        }
    }
    if (fill_segment(pass, last_first, n))
        return 1;
    const vec_f64 *p = pass->ranks + (n - 1 - last_first) * cutoff;
    vec_f64 beat = pass->beat[n - 1], before = {0};
    *value = (vec_f64){0};
    for (size_t r = 0; r < cutoff; r++) {
        *value += pass->task->discounts[r] * (p[r] + beat * (before - p[r]));
        before = p[r];
    }
    return 0;
}

/* The backward pass computes from a(r), the derivatives of the value with respect to p_i(r), those with respect to
 * beat_i and p_{i-1}(r). It subtracts the derivatives with respect to all scores, times the factors, from the gradient;
 * *own gets their sum. */
static int go_back(soft_rank_pass *pass, vec_f64 factor, vec_f64 *own)
{
    const size_t cutoff = pass->task->cutoff, length = pass->length;
    vec_f64 zero = {0}, *a = pass->a;
    *own = zero;
    for (size_t r = 0; r < cutoff; r++)
        a[r] = vec_all(pass->task->discounts[r]);
    for (size_t i = pass->task->n; i-- > 0;) {
        const vec_f64 *p = pass->ranks + i % length * cutoff;
        vec_f64 beat = pass->beat[i], slope = zero, before = zero;
        for (size_t r = 0; r < cutoff; r++) {
            slope += a[r] * (before - p[r]);
            before = p[r];
            a[r] += beat * ((r + 1 < cutoff ? a[r + 1] : zero) - a[r]);
        }
        vec_f64 share = factor * slope * pass->density[i];
        pass->task->gradient[i] -= vec_sum(share);
        *own += share;
        if (cancelled(pass))
            return 1;
        if (i > 0 && i % length == 0) {
            memcpy(pass->ranks, pass->firsts + (i / length - 1) * cutoff, cutoff * sizeof *pass->ranks);
            if (fill_segment(pass, i - length, i))
                return 1;
        }
    }
    return 0;
}

static int soft_rank_register(const soft_rank_task *task, const int32_t *targets, size_t n_targets,
                              const double *factors)
{
    const size_t n = task->n, cutoff = task->cutoff, length = plr_soft_rank_segment(n, cutoff);
    soft_rank_pass pass = {.task = task, .length = length, .beat = (vec_f64 *)task->memory};
    vec_f64 factor = vec_load_some(factors, n_targets, 0.0), value, own_gradient;
    pass.density = pass.beat + n;
    pass.firsts = pass.density + n;
    pass.ranks = pass.firsts + (n - 1) / length * cutoff;
    pass.a = pass.ranks + length * cutoff;
    compare_scores(&pass, targets, n_targets);
    if (place_all(&pass, &value) || go_back(&pass, factor, &own_gradient))
        return 1;
    for (size_t t = 0; t < n_targets; t++)
        task->gradient[targets[t]] += own_gradient[t];
    *task->value -= vec_sum(factor * value);
    return 0;
}

static int soft_rank(const soft_rank_task *task, const int32_t *targets, size_t n_targets, const double *factors)
{
    for (size_t first = 0; first < n_targets; first += PLR_LANES) {
        size_t here = n_targets - first < PLR_LANES ? n_targets - first : PLR_LANES;
        if (soft_rank_register(task, targets + first, here, factors + first))
            return 1;
    }
    return 0;
}

const rank_kernels ISA(rank_kernels) = {logistic_rank, add_slopes, soft_rank};
