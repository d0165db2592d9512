/* The team that OpenMP keeps for each thread which begins loops, and whose threads fall asleep after a while. This is
 * not `__thread`: the loader allocates such memory at its first use in each thread, or ends the process. */
#ifndef PLR_OWN_TEAM_H
#define PLR_OWN_TEAM_H

#include <pthread.h>
#include <stdlib.h>

typedef struct {
    int size;     /* threads of the last team, 1 at first */
    double ended; /* when its last loop ended */
    double saved; /* time that all loops together saved over one thread */
} own_team;

typedef struct {
    pthread_key_t key;
    int exists; /* not if the process has too many keys */
} own_teams;

static inline void plr_make_own_teams(own_teams *teams)
{
    teams->exists = pthread_key_create(&teams->key, free) == 0;
}

/* Return the team of the calling thread; that of a thread at its first loop, in `fresh`, if it can have no other. */
static inline own_team *plr_own_team(const own_teams *teams, own_team *fresh)
{
    own_team *own = teams->exists ? pthread_getspecific(teams->key) : NULL;
    *fresh = (own_team){1, -1e300, 0};
    if (own != NULL || !teams->exists || (own = malloc(sizeof *own)) == NULL)
        return own != NULL ? own : fresh;
    *own = *fresh;
    if (pthread_setspecific(teams->key, own) == 0)
        return own;
    free(own);
    return fresh;
}

#endif
