"""Threads that cannot be created: a call goes on with those there are."""

import sys
from pathlib import Path

import pytest

import plrank_fast as plr
from programs import compiled, run_on_batch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and preloaded libraries as Linux has them")

ONLY_SO_MANY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* No more threads than allowed exist at the same time; the first one does not count. */
static int allowed = 1 << 20, alive = 0;
void allow(int n) { allowed = n; }
int number_alive(void) { return __atomic_load_n(&alive, __ATOMIC_SEQ_CST); }

typedef struct { void *(*function)(void *); void *argument; } start;

static void *run(void *argument)
{
    start it = *(start *)argument;
    free(argument);
    void *result = it.function(it.argument);
    __atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    if (__atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST) > allowed) {
        __atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
        return EAGAIN;
    }
    start *it = malloc(sizeof *it);
    *it = (start){function, argument};
    return real(thread, attributes, run, it);
}
"""


@pytest.fixture(scope="module")
def only_so_many(tmp_path_factory, without_address_sanitizer):
    """Library that lets no more than so many threads exist."""
    return compiled(tmp_path_factory.mktemp("threads"), ONLY_SO_MANY, "-ldl")


@pytest.mark.parametrize("possible", [0, 1, 3, 6])
def test_as_many_as_can_be_created(only_so_many, possible):
    """Also twice in a row, and all of them when they can be had again. Mutants: a thread counted that was not created;
    one thread wherever not all can be had; the failure remembered for ever."""
    assert run_on_batch(
        f"""
        library = ctypes.CDLL(None)
        here = library.number_alive()
        library.allow(here + {possible})
        print(team(7), team(7))
        library.allow(here + 100)
        print(team(7))
        """,
        LD_PRELOAD=only_so_many,
    ) == f"{possible + 1} {possible + 1}\n7\n"  # fmt: skip


def test_a_large_team():
    """All of the threads that are asked for. Mutant: seats counted to fifteen."""
    assert run_on_batch("print(team(40))") == "40\n"


def test_threads_have_no_memory_that_the_loader_allocates():
    """It ends the process if there is none ("cannot allocate memory for thread-local data"), at the first call by
    several threads. Mutant: a number of each thread that is ``__thread``."""
    modules = [*Path(plr.__file__).parent.rglob("*.so")]
    assert modules
    assert [module.name for module in modules if b"__tls_get_addr" in module.read_bytes()] == []


def test_borrowed_threads():
    """Loops on the threads of another OpenMP runtime have the same bits. Mutants: a seat that two threads have; the
    address that was valid before not returned; another Python thread that has them too."""
    pytest.importorskip("lightgbm")
    assert run_on_batch("""
        import lightgbm, os
        from plrank_fast._core.runtime.teams import borrow_team
        from plrank_fast._shared.openmp import parallel_of, threads_of
        of_pool, created = team(7), []
        count = lambda: len(os.listdir("/proc/self/task"))
        other = threading.Thread(target=lambda: created.append((count(), team(7), count())))
        with threads_of("lightgbm"):
            print(parallel_of("lightgbm") != 0, [team(n) for n in (1, 2, 7)])
            long = np.random.default_rng(0).normal(size=64 * 400)
            lists = {"offsets": np.arange(65) * 400}
            exact = lambda n: plr.pl_rank_exact(long, long**2, plr.dcg_weights(50), n_threads=n, **lists)
            print(all((exact(7) == exact(1)).all() for _ in range(5)))
            other.start()
            other.join()
            print(created[0][2] == created[0][0], borrow_team(0) == parallel_of("lightgbm"))
        print(borrow_team(0), parallel_of("catboost"))
    """) == "True [1, 2, 7]\nTrue\nTrue True\n0 0\n"  # fmt: skip


def test_callers_at_the_same_time():
    """More Python threads than there are places for open loops. Mutant: a place that two have."""
    assert run_on_batch("""
        results = []
        callers = [threading.Thread(target=lambda: results.extend((gradient(3) == expected).all() for _ in range(20)))
                   for _ in range(12)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        print(len(results), all(results))
    """) == "240 True\n"  # fmt: skip
