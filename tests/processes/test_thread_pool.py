"""Threads that cannot be created: a call goes on with those there are."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import plrank_fast as plr
from programs import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and preloaded libraries as Linux has them")

# a call by any number of threads, which says whether its bits are those of one, and the size of its team
CALL = """
import ctypes, resource, threading
import numpy as np, plrank_fast as plr
from plrank_fast._core.runtime import threads as _threads
import runtime_variables

_threads.available_cpus = lambda: 64
runtime_variables.set_costs(teams=1)
offsets = np.arange(0, 1001, 20)
scores = np.random.default_rng(0).normal(size=1000)

def gradient(n_threads):
    return plr.pl_rank_3(scores, scores, plr.dcg_weights(5), offsets=offsets, rng=1, n_threads=n_threads)

alone = gradient(1)

def team(n_threads):
    runtime_variables.team_that_ran()
    assert (gradient(n_threads) == alone).all()
    return runtime_variables.team_that_ran()[0]

library = ctypes.CDLL(None)  # ONLY_SO_MANY, if it is loaded
here = library.number_alive() if hasattr(library, "number_alive") else 0
allow = lambda n: library.allow(here + n)
"""

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


def run(code, *arguments, **environment):
    return run_python(CALL + textwrap.dedent(code), *arguments, **environment)


@pytest.fixture(scope="module")
def only_so_many(tmp_path_factory, without_address_sanitizer):
    """Library that lets no more than so many threads exist."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("threads")
    (folder / "so_many.c").write_text(ONLY_SO_MANY)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / "so_many.so", folder / "so_many.c", "-ldl"], check=True
    )
    return str(folder / "so_many.so")


@pytest.mark.parametrize("possible", [0, 1, 3, 6])
def test_as_many_as_can_be_created(only_so_many, possible):
    """Also twice in a row, and all of them when they can be had again. Mutants: a thread counted that was not created;
    one thread wherever not all can be had; the failure remembered for ever."""
    assert run(
        f"""
        allow({possible})
        print(team(7), team(7))
        allow(100)
        print(team(7))
        """,
        LD_PRELOAD=only_so_many,
    ) == f"{possible + 1} {possible + 1}\n7\n"  # fmt: skip


def test_a_large_team():
    """All of the threads that are asked for. Mutant: seats counted to fifteen."""
    assert run("print(team(40))") == "40\n"


@pytest.mark.parametrize("n_threads", [2, 4])
@pytest.mark.parametrize("megabytes", [0, 2, 8, 12, 26])
@pytest.mark.usefixtures("without_address_sanitizer")
def test_address_space_for_no_more(megabytes, n_threads):
    """Limited to so many megabytes more than are in use. Mutant: a thread counted that was not created."""
    answer = run(
        """
        import sys
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[1]) << 20),) * 2)
        try:
            print(team(int(sys.argv[2])) >= 1)
        except MemoryError as error:
            print("bytes" in str(error))
        """,
        str(megabytes), str(n_threads),
    )  # fmt: skip
    assert answer == "True\n"


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
    assert run("""
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
    assert run("""
        results = []
        callers = [threading.Thread(target=lambda: results.extend((gradient(3) == alone).all() for _ in range(20)))
                   for _ in range(12)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        print(len(results), all(results))
    """) == "240 True\n"  # fmt: skip
