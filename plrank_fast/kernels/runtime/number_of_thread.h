/* Numbers that each thread has of its own, 0 at first. They are not `__thread`: the loader allocates that memory at its
 * first use in each thread, and ends the process if there is none. */
#ifndef PLR_NUMBER_OF_THREAD_H
#define PLR_NUMBER_OF_THREAD_H

#include <pthread.h>
#include <stdint.h>

typedef struct {
    pthread_key_t key;
    int exists; /* not if the process has too many keys; the number is then 0 for ever */
} number_of_thread;

static inline void plr_make_number(number_of_thread *number)
{
    number->exists = pthread_key_create(&number->key, NULL) == 0;
}

static inline int plr_own(const number_of_thread *number)
{
    return number->exists ? (int)(intptr_t)pthread_getspecific(number->key) : 0;
}

static inline void plr_set_own(const number_of_thread *number, int value)
{
    if (number->exists)
        pthread_setspecific(number->key, (void *)(intptr_t)value);
}

#endif
