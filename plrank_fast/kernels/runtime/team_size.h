/* How many threads a loop has: what is learnt from earlier loops of its kind, and from when threads began.
 *
 * A loop of `work` nanoseconds on one thread takes max(work / n, longest pass) + waking on n threads, if the last of
 * them begins `waking` nanoseconds after the first. It has one thread or all of them, whichever is faster by what was
 * measured before; sizes in between are for teams that were bad. Everything here is learnt while the process runs, and
 * nothing is a property of one machine. Python threads share it by relaxed atomic operations: if two write at once, one
 * measurement is lost.
 */
#ifndef PLR_TEAM_SIZE_H
#define PLR_TEAM_SIZE_H

#include <math.h>
#include <stdint.h>

#include "runtime/atomics.h"

#define PLR_PAUSES 40 /* pauses from 1 ns to 9 minutes, by their logarithm to base 2 */
#define PLR_LOOP_KINDS 512
#define PLR_SHARE_LOST 0.0625 /* part of the time, for teams that turn out slower than fewer threads */
#define PLR_TIMED_WORK 2e4 /* ns of a loop from which on its threads may take part of a microsecond to read a clock */

typedef struct {
    double waking[PLR_PAUSES]; /* waking of a team that last ran so long ago, 0 if not known: sleepers take longer */
    double factors[PLR_LOOP_KINDS]; /* time on one thread over its estimate, by kind of loop. 0: not known */
    double credit;             /* time that may be lost to find out whether waking is still what it was */
    int limit;                 /* size of teams until `limited_until` */
    double limited_until;
} team_sizes;

static inline int plr_logarithm(double ns)
{
    return ns < 2.0 ? 0 : ns >= 4e18 ? 61 : 63 - __builtin_clzll((unsigned long long)ns);
}

/* Learn a measurement: the geometric mean of the old value and the new one. */
static inline void plr_learn(double *learnt, double measured)
{
    const double before = plr_get(learnt);
    if (before > 0.0)
        measured = sqrt(before * measured);
    plr_set(learnt, measured > 1e-3 ? measured : 1e-3);
}

/* Return where the factor of a kind of loop is learnt. Each size of a pass is another kind: estimates of short queries
 * are wrong by another factor than those of long ones. */
static inline double *plr_factor_of(team_sizes *sizes, uintptr_t kind, double ns_per_pass)
{
    const uint64_t mixed = ((uint64_t)kind / 16 + (uint64_t)plr_logarithm(ns_per_pass)) * 0x9E3779B97F4A7C15u;
    return sizes->factors + (mixed >> 32) % PLR_LOOP_KINDS;
}

/* A loop as it is expected, and where what is learnt of it belongs. */
typedef struct {
    double ns;             /* estimated on one thread */
    double work, longest;  /* the same and the longest pass's time, by what was learnt */
    double waking;
    double *factor, *waking_learnt;
} expected_loop;

static inline expected_loop plr_expect(
    team_sizes *sizes, uintptr_t kind, double ns, double longest, double n_passes, double pause)
{
    int i = plr_logarithm(pause) < PLR_PAUSES ? plr_logarithm(pause) : PLR_PAUSES - 1;
    expected_loop loop = {.ns = ns, .work = ns, .waking_learnt = sizes->waking + i};
    loop.factor = plr_factor_of(sizes, kind, ns / n_passes);
    if (plr_get(loop.factor) > 0.0)
        loop.work *= plr_get(loop.factor);
    loop.longest = loop.work * (longest * n_passes > ns ? longest / ns : 1.0 / n_passes);
    for (; i >= 0 && loop.waking == 0.0; i--) /* what is not known takes at least as long as after shorter pauses */
        loop.waking = plr_get(sizes->waking + i);
    return loop;
}

static inline double plr_time_of_team(const expected_loop *loop, int n_threads)
{
    const double share = loop->work / n_threads;
    return (share > loop->longest ? share : loop->longest) + (n_threads > 1 ? loop->waking : 0.0);
}

/* Return how many of `most` threads a loop should have. The first short one of its kind shows how long one takes. */
static inline int plr_team_size(const team_sizes *sizes, const expected_loop *loop, int most, double now)
{
    const int limit = __atomic_load_n(&sizes->limit, __ATOMIC_RELAXED);
    if (limit < most && now < plr_get(&sizes->limited_until))
        most = limit;
    if (loop->work <= PLR_TIMED_WORK && plr_get(loop->factor) <= 0.0)
        return 1;
    return plr_time_of_team(loop, most) < loop->work + plr_get(&sizes->credit) ? most : 1;
}

/* Learn from a loop that passed on one thread though it might have had a team. Waking is only measured where there are
 * teams, so a small part of the time without them may be lost on looking again. */
static inline void plr_learn_alone(team_sizes *sizes, const expected_loop *loop, double taken)
{
    plr_learn(loop->factor, taken / loop->ns);
    plr_set(&sizes->credit, plr_get(&sizes->credit) + PLR_SHARE_LOST * taken);
}

/* Judge a team by the time that its loop took. If half of its threads or one would have been faster,
 * loops have fewer until the losses are a small part of the time again; a loss after a long time without one costs no
 * threads, as what disturbed the team is mostly over. */
static inline void plr_judge(team_sizes *sizes, const expected_loop *loop, int n_threads, double taken, double now)
{
    const int fewer = plr_time_of_team(loop, n_threads / 2) < loop->work ? n_threads / 2 : 1;
    const double loss = taken - plr_time_of_team(loop, fewer);
    if (loss <= 0.0)
        return;
    const double pause = loss / PLR_SHARE_LOST, before = plr_get(&sizes->limited_until);
    __atomic_store_n(&sizes->limit, fewer, __ATOMIC_RELAXED);
    plr_set(&sizes->limited_until, (before > now - pause ? before : now - pause) + pause);
    plr_set(&sizes->credit, 0.0);
}

/* Learn from a loop of a team: its last thread began after `waking`, its passes took `busy` in all, and `busiest` of
 * the thread that had most. In a loop that is not short they count while the thread has a processor. In a short one
 * they may take twice as long as on one thread, because threads fetch what others have written; one thread takes `busy`
 * at most. If it takes more than is expected, the team looks bad, and later loops on one thread show it. */
static inline void plr_learn_team(
    team_sizes *sizes, expected_loop *loop, int n_threads, double started, double ended, double waking, double busy,
    double busiest)
{
    const int is_short = loop->work <= PLR_TIMED_WORK;
    if (!is_short || busy < loop->work)
        plr_learn(loop->factor, busy / loop->ns);
    if (!is_short) {
        loop->work = busy > loop->work ? busy : loop->work;
        loop->longest = busiest;
    }
    plr_judge(sizes, loop, n_threads, ended - started, ended);
    if (loop->waking > 0.0 && waking > 4.0 * loop->waking) /* a thread that waited for a time slice, mostly */
        waking = 4.0 * loop->waking;
    plr_learn(loop->waking_learnt, waking);
}

#endif
