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


def test_one_thread_where_no_team_may_run():
    """And a team where it must. Mutant: ``or`` in place of ``and`` where ``run_loop`` takes the caller's record."""
    assert run_on_batch("""
        runtime_variables.set_costs(teams=-1)
        alone = team(2)
        runtime_variables.set_costs(teams=1)
        print(alone, team(2) == (2 if plr.build_info()["openmp"] else 1))
    """) == "1 True\n"  # fmt: skip


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


def test_another_python_thread_where_no_thread_is_left(only_so_many):
    """It has a team of its own, whose runtime would end the process; XGBoost's too. Mutants: what one Python thread has
    taken for what all have; no threads created before those of a lender."""
    assert run_on_batch(
        """
        from plrank_fast._shared.openmp import parallel_of, threads_of
        try:
            import xgboost
        except ImportError:
            pass
        library, sizes = ctypes.CDLL(None), [team(7)]
        def call():
            sizes.append(team(7))
            with threads_of("xgboost"):
                sizes.append(team(7))
        library.allow(library.number_alive() + 1)
        other = threading.Thread(target=call)
        other.start()
        other.join()
        print(sizes)
        """,
        LD_PRELOAD=only_so_many,
    ) == "[7, 1, 1]\n"  # fmt: skip


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
    """Loops on the threads of another OpenMP runtime have the same bits, and other Python threads have their own,
    whoever ends first. Mutants: a seat that two threads have; the address that was valid before not returned; one
    address for all Python threads."""
    pytest.importorskip("xgboost")
    assert run_on_batch("""
        import xgboost
        from plrank_fast._core.runtime.teams import borrow_teams
        from plrank_fast._shared.openmp import parallel_of, threads_of
        entered, left = threading.Barrier(2), threading.Barrier(2)
        def enter():
            with threads_of("xgboost"):
                entered.wait()
                left.wait()
        other = threading.Thread(target=enter)
        long = np.random.default_rng(0).normal(size=64 * 400)
        lists = {"offsets": np.arange(65) * 400}
        exact = lambda n: plr.pl_rank_exact(long, long**2, plr.dcg_weights(50), n_threads=n, **lists)
        with threads_of("xgboost"):
            other.start()
            print(parallel_of("xgboost") != 0, [team(n) for n in (1, 2, 7)])
            print(all((exact(7) == exact(1)).all() for _ in range(5)))
            entered.wait()
        print(borrow_teams(0), team(7))
        left.wait()
        other.join()
        print(borrow_teams(0), parallel_of("catboost"))
    """) == "True [1, 2, 7]\nTrue\n0 7\n0 0\n"  # fmt: skip


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
