"""Threads that cannot be created, or get no processor: a call goes on with those there are."""

import os
import platform
import shutil
import subprocess
import sys
import textwrap

import pytest

import plrank_fast as plr

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits and preloaded libraries as Linux has them"),
    pytest.mark.skipif(not plr.build_info()["openmp"], reason="built without OpenMP"),
]

UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}  # FE_UPWARD of <fenv.h>

# a call by any number of threads, which says whether its bits are those of one, and the size of its team
CALL = """
import ctypes, resource, threading
import numpy as np, plrank_fast as plr
from plrank_fast._core.runtime import threads as _threads

_threads.available_cpus = lambda: 64
_threads.set_costs(worth_ns=0.0)
offsets = np.arange(0, 1001, 20)
scores = np.random.default_rng(0).normal(size=1000)

def gradient(n_threads):
    return plr.pl_rank_3(scores, scores, plr.dcg_weights(5), offsets=offsets, rng=1, n_threads=n_threads)

alone = gradient(1)

def team(n_threads):
    _threads.team_that_ran()
    assert (gradient(n_threads) == alone).all()
    return _threads.team_that_ran()[0]

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
#include <unistd.h>

/* No more threads than allowed exist at the same time; the first one does not count. While they are held, those that
 * are created get no processor. */
static int allowed = 1 << 20, alive = 0, held = 0;
void allow(int n) { allowed = n; }
void hold(int now) { __atomic_store_n(&held, now, __ATOMIC_SEQ_CST); }
int number_alive(void) { return __atomic_load_n(&alive, __ATOMIC_SEQ_CST); }

typedef struct { void *(*function)(void *); void *argument; } start;

static void *run(void *argument)
{
    start it = *(start *)argument;
    free(argument);
    while (__atomic_load_n(&held, __ATOMIC_SEQ_CST))
        usleep(1000);
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
    answer = subprocess.run(
        [sys.executable, "-c", CALL + textwrap.dedent(code), *arguments],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


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
    """Also twice in a row, and all of them when they can be had again. Mutants: a helper counted that was not created
    (the caller waits for it for ever); the failure remembered for ever."""
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
    """All of the threads that are asked for."""
    assert run("print(team(40))") == "40\n"


def test_helpers_are_kept(only_so_many):
    """For larger teams after smaller ones, and for other Python threads. Mutants: created anew for every loop; seats
    that stay promised once a loop is closed."""
    assert run(
        """
        print(team(7), team(2), team(2))
        allow(7)
        print(team(7))
        sizes = []
        other = threading.Thread(target=lambda: sizes.append(team(7)))
        other.start()
        other.join()
        print(sizes)
        """,
        LD_PRELOAD=only_so_many,
    ) == "7 2 2\n7\n[7]\n"  # fmt: skip


def test_every_caller_has_helpers_of_its_own(only_so_many):
    """Callers who insist on whole teams never wait for each other's. Mutant: helpers for the largest team only."""
    assert run(
        """
        import time
        go = threading.Event()
        callers = [threading.Thread(target=lambda: (go.wait(), gradient(3))) for _ in range(2)]
        for caller in callers:
            caller.start()
        library.hold(1)
        go.set()
        last = time.monotonic() + 30.0
        while library.number_alive() < here + 6 and time.monotonic() < last:
            time.sleep(0.001)
        print(library.number_alive() - here)
        library.hold(0)
        for caller in callers:
            caller.join()
        """,
        LD_PRELOAD=only_so_many,
    ) == "6\n"  # fmt: skip


def test_helpers_that_get_no_processor(only_so_many):
    """The caller does all the work and waits for none of them; OpenMP would wait for ever. They serve later loops.

    Mutants: the caller waits for its whole team, at the beginning or at the end."""
    assert run(
        """
        library.hold(1)
        _threads.set_costs(worth_ns=1.0)  # more threads are worth having, not worth waiting for
        print(team(7), team(7))
        library.hold(0)
        _threads.set_costs(worth_ns=0.0)
        print(team(7))
        """,
        LD_PRELOAD=only_so_many,
    ) == "1 1\n7\n"  # fmt: skip


@pytest.mark.skipif(platform.machine() not in UPWARD, reason="how this processor is told to round is not known here")
def test_helpers_round_as_the_caller_does():
    """And flush subnormal numbers if it does, which some libraries switch on for a thread. Mutant: as they were
    created."""
    assert run(
        f"""
        team(2)
        assert ctypes.CDLL("libm.so.6").fesetround({UPWARD[platform.machine()]}) == 0
        nearest, alone = alone, gradient(1)
        assert (alone != nearest).any()
        workers = 0
        while workers < 2:
            assert (gradient(2) == alone).all()
            workers = _threads.team_that_ran()[1]
        print("as one thread")
        """
    ) == "as one thread\n"  # fmt: skip


@pytest.mark.parametrize("n_threads", [2, 4])
@pytest.mark.parametrize("megabytes", [0, 2, 8, 9, 10, 12, 18, 26])
@pytest.mark.usefixtures("without_address_sanitizer")
def test_address_space_for_no_more(megabytes, n_threads):
    """Limited to so many megabytes more than are in use. Mutant: a helper counted that was not created."""
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


def test_address_space_for_all():
    assert run("print(team(2), team(5))") == "2 5\n"
