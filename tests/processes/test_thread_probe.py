"""Threads that cannot be created: a call goes on with those there are, where OpenMP would end the process."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import plrank_fast as plr
from plrank_fast._core.runtime import threads as _threads
from programs import run_python

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits and preloaded libraries as Linux has them"),
    pytest.mark.skipif(not plr.build_info()["openmp"], reason="built without OpenMP"),
]

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
    """Also twice in a row, and all of them when they can be had again. Mutants: teams not looked into (libgomp: "Thread
    creation failed", exit code 1); one thread wherever not all can be had; the failure remembered for ever."""
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
    """All of the threads that are asked for. Mutant: memory asked for as if each thread gave some back."""
    assert run("print(team(40))") == "40\n"


def test_a_team_that_grows_again(only_so_many):
    """libgomp has ended threads that a smaller team left out. Mutant: the largest team remembered, not the last."""
    assert run(
        """
        print(team(7), team(2), team(2))
        allow(1)
        print(2 <= team(7) <= 7)
        """,
        LD_PRELOAD=only_so_many,
    ) == "7 2 2\nTrue\n"  # fmt: skip


def test_other_python_threads(only_so_many):
    """libgomp has a pool for each thread that calls. Mutant: one last team for the process."""
    assert run(
        """
        go, sizes = threading.Event(), []
        other = threading.Thread(target=lambda: (go.wait(), sizes.append(team(4))))
        other.start()
        print(team(4))
        allow(6)
        go.set()
        other.join()
        print(sizes[0] >= 3)
        """,
        LD_PRELOAD=only_so_many,
    ) == "4\nTrue\n"  # fmt: skip


@pytest.mark.parametrize("n_threads", [2, 4])
@pytest.mark.parametrize("megabytes", [0, 2, 8, 12, 26])
@pytest.mark.usefixtures("without_address_sanitizer")
def test_address_space_for_no_more(megabytes, n_threads):
    """Limited to so many megabytes more than are in use. Mutants: teams not looked into (libgomp at 2 to 8: exit code
    1); probes with stacks of the very size (libomp, whose stacks are larger: the kept one is in the way)."""
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


def test_large_stacks():
    """OMP_STACKSIZE is what OpenMP's threads take. Mutant: probes with stacks of the usual size."""
    assert run(
        """
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
        print(team(2))
        """,
        OMP_STACKSIZE="200M",
    ) == "1\n"  # fmt: skip


def test_small_stacks():
    """One thread where a kernel has no room; two histograms alone take 20 kB. Mutant: a team whose threads crash."""
    assert run(
        """
        long = np.tile(np.arange(20_000.0) % 7, 2)
        plr.pl_rank_exact(long, long, [1.0], offsets=[0, 20_000, 40_000], n_threads=2)
        print(team(2), plr.build_info()["n_threads"])
        """,
        OMP_STACKSIZE="16k",
    ) == "1 1\n"  # fmt: skip


def test_threads_have_no_memory_that_the_loader_allocates():
    """It ends the process if there is none ("cannot allocate memory for thread-local data"), at the first call by
    several threads. Mutant: a number of each thread that is ``__thread``."""
    modules = [*Path(plr.__file__).parent.rglob("*.so")]
    assert modules
    assert [module.name for module in modules if b"__tls_get_addr" in module.read_bytes()] == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 4 << 20),
        ({"OMP_STACKSIZE": "1000"}, 4 << 20),
        ({"OMP_STACKSIZE": "10000"}, 10000 << 10),
        ({"OMP_STACKSIZE": " 16 m "}, 16 << 20),
        ({"OMP_STACKSIZE": "5000000B"}, 5000000),
        ({"OMP_STACKSIZE": "1g"}, 1 << 30),
        ({"OMP_STACKSIZE": "plenty"}, 4 << 20),
        ({"GOMP_STACKSIZE": "8192"}, 8 << 20),
        ({"KMP_STACKSIZE": "8388608"}, 8 << 20),
        ({"KMP_STACKSIZE": "8MB", "OMP_STACKSIZE": "16M"}, 16 << 20),
        ({"OMP_STACKSIZE": "9" * 30 + "G"}, 1 << 62),
        ({"OMP_STACKSIZE": "255"}, 0),
        ({"OMP_STACKSIZE": "256k"}, 4 << 20),
        ({"OMP_STACKSIZE": "16k", "GOMP_STACKSIZE": "9M"}, 0),
    ],
    ids=str,
)
def test_stack_bytes(environment, expected):
    """The runtimes read them so. Mutant: kilobytes as the unit of KMP_STACKSIZE."""
    assert _threads.stack_bytes(environment) == expected
