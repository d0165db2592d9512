/* Variables that threads share without a lock. */
#ifndef PLR_ATOMICS_H
#define PLR_ATOMICS_H

static inline void plr_count(long long *number)
{
    __atomic_fetch_add(number, 1, __ATOMIC_RELAXED);
}

static inline void plr_add_flags(int *flags, int found)
{
    __atomic_fetch_or(flags, found, __ATOMIC_RELAXED);
}

static inline double plr_get(const double *number)
{
    double value;
    __atomic_load(number, &value, __ATOMIC_RELAXED);
    return value;
}

static inline void plr_set(double *number, double value)
{
    __atomic_store(number, &value, __ATOMIC_RELAXED);
}

#endif
