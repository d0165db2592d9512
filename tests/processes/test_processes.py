"""Worker processes, forks, signals, memory that runs out, interpreters that end: calls answer, or fail cleanly."""

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

import plrank_fast
from programs import compiled, run_on_batch, run_python

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

TEAM = 2 if plrank_fast.build_info()["openmp"] else 1


@needs_fork
@pytest.mark.usefixtures("without_address_sanitizer")  # under which a fork takes a tenth of a second
def test_forks_after_a_parallel_region():
    """Every child answers with the same bits, by itself. Mutant: the atfork handler removed (the first child then waits
    for ever for threads that it does not have)."""  # fmt: skip
    assert run_on_batch("""
        team(2)
        for _ in range(200):
            child = os.fork()
            if child == 0:
                os._exit(0 if team(2) == 1 else 1)
            assert os.waitpid(child, 0)[1] == 0
        print(team(2))
    """) == f"{TEAM}\n"  # fmt: skip


@needs_fork
@pytest.mark.usefixtures("without_address_sanitizer")
def test_forks_while_a_thread_computes_an_attribute():
    """A child computes it for other objects of the class. Mutant: the lock of ``functools.cached_property`` in Python
    3.11, or one in ``_shared.once`` (the child waits for the other thread, until its timer ends it)."""  # fmt: skip
    assert run_python("""
        import os, signal, threading
        from plrank_fast.validation import DrawnKey

        begun, go_on = threading.Event(), threading.Event()
        waiting = DrawnKey(lambda: begun.set() or go_on.wait() * 1)
        thread = threading.Thread(target=lambda: waiting.key)
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if DrawnKey(lambda: 3).key.size == 2 else 1)
        print(os.waitpid(child, 0)[1])
        go_on.set()
        thread.join()
    """) == "0\n"  # fmt: skip


@needs_fork
def test_forked_siblings_draw_differently():
    """An implicit stream is fresh entropy in each child. Mutant: one generator for all implicit streams."""
    answer = run_on_batch("""
        plr.sample_rankings(np.zeros(50), 1)
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os.write(1, (plr.sample_rankings(np.zeros(50), 1)[0].tobytes().hex() + "\\n").encode())
                os._exit(0)
            os.waitpid(child, 0)
    """)
    assert len(set(answer.split())) == 3


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(method):
    """Same bits from the workers of a pool, however they are started; those that are not forked have teams."""
    multiprocessing = pytest.importorskip("multiprocessing")
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    assert run_on_batch(f"""
        import multiprocessing
        work = '''[
            plr := __import__("plrank_fast"), __import__("runtime_variables").set_costs(teams=1),
            plr.pl_rank_3(*arguments, **options), __import__("runtime_variables").team_that_ran(),
        ][2:]'''
        options = {{"offsets": offsets, "rng": 1, "n_threads": 2}}
        names = {{"arguments": (scores, scores, plr.dcg_weights(5)), "options": options}}
        expected_team = 1 if "{method}" == "fork" else min({TEAM}, processors)
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            answers = [pool.apply_async(eval, (work, names)) for _ in range(6)]
            answers = [answer.get() for answer in answers]
        print(all((gradient == expected).all() and size == expected_team for gradient, size in answers))
    """) == "True\n"  # fmt: skip


def test_a_wheel_brings_its_openmp():
    """The forks above have this runtime. Mutant: `auditwheel repair --exclude libgomp.so.1`."""
    if "manylinux" not in (metadata.distribution("plrank-fast").read_text("WHEEL") or ""):
        pytest.skip("not a wheel that auditwheel has repaired")
    libraries = Path(plrank_fast.__file__).parents[1] / "plrank_fast.libs"
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libgomp" in line}
    assert str(next(libraries.glob("libgomp*"), None)) in loaded


FAILING_MALLOC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The n-th allocation by a module of the package fails, counted from 0, once armed. */
static long left = -1;
/* Returns what was left of the count before: negative where the n-th allocation has failed. */
long arm(long n)
{
    const long before = left;
    left = n;
    return before;
}

static int fails(void *caller)
{
    Dl_info info;
    return left >= 0 && dladdr(caller, &info) && strstr(info.dli_fname, "/plrank_fast/") && left-- == 0;
}

void *malloc(size_t size)
{
    static void *(*real)(size_t);
    if (!real)
        real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    return fails(__builtin_return_address(0)) ? NULL : real(size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    static int (*real)(void **, size_t, size_t);
    if (!real)
        real = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    return fails(__builtin_return_address(0)) ? 12 : real(memory, alignment, size);
}
"""


@pytest.fixture
def failing_malloc(tmp_path, without_address_sanitizer):
    """A library whose malloc fails when it is told to."""
    return compiled(tmp_path, FAILING_MALLOC, "-ldl")


@pytest.mark.skipif(sys.platform != "linux", reason="allocation is replaced as Linux does it")
def test_memory_runs_out_in_every_function(failing_malloc):
    """Each of the first allocations of each public function fails in turn: MemoryError that names the size and leaves
    ``out`` untouched, or where a team can do without (a thread that cannot be created) the same bits. The next call
    gives them too. Mutant: no check for NULL in Workspaces."""
    answer = run_on_batch(
        """
        sys.path.insert(0, FOLDER)
        from problems import ragged
        from public_calls import BATCHES, OTHERS, arrays
        arm = ctypes.CDLL(None).arm
        arm.argtypes = [ctypes.c_long]
        *problem, of_queries = ragged([9, 0, 40, 3, 1, 70])
        failed = set()
        for name, function in {**BATCHES, **OTHERS}.items():
            result = function(*problem, 3, offsets=of_queries)
            outs = [np.full_like(array, 7.0) for array in arrays(result)]
            given = {"out": tuple(outs) if isinstance(result, tuple) else outs[0]}
            given = given if "out" in getattr(function, "parameters", ()) else {}
            call_it = lambda: [
                array.tobytes()
                for array in arrays(function(*problem, 3, offsets=of_queries, n_threads=2, **given))
            ]
            expected_bytes = call_it()
            for n in range(40):  # a fit repeats its steps a hundred times
                [out.fill(7.0) for out in outs]
                runtime_variables.drop_spare()
                armed = arm(n)
                try:
                    answer = call_it()
                except MemoryError as error:
                    failed.add(name)
                    assert "bytes" in str(error), (name, error)
                    assert all((out == 7.0).all() for out in outs), (name, n)
                else:
                    assert answer == expected_bytes, (name, n)
                left = arm(-1)
                if left >= 0:
                    break
                assert call_it() == expected_bytes, (name, n)
        print(len(failed), "failed cleanly;", sorted({**BATCHES, **OTHERS}.keys() - failed))
        team(2)
        """.replace("FOLDER", repr(str(Path(__file__).parents[1]))),
        LD_PRELOAD=failing_malloc,
    )
    # these allocate nothing themselves: NumPy does
    assert int(answer.split()[0]) > 70, answer


def test_daemon_thread_inside_a_call_at_exit():
    """The interpreter ends while a team is inside a kernel."""
    run_on_batch(f"""
        long = np.zeros(1000)
        work = lambda: plr.pl_rank_3(long, long, plr.dcg_weights(10), n_samples=10**8, n_threads=2)
        threading.Thread(target=work, daemon=True).start()
        while runtime_variables.team_that_ran() < {TEAM}:
            time.sleep(0.01)
    """)


def test_subinterpreters():
    """A second interpreter in the process imports the package, or is told cleanly that it cannot; the first goes on.

    Mutant: `prange`, which asks for the GIL in loops of kernels and gets a wrong answer beside another interpreter.
    """
    answer = run_on_batch("""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        try:
            failure = interpreters.run_string(other, "import plrank_fast; plrank_fast.dcg_weights(3)")
            print(failure is None or "ImportError" in str(failure))
        except interpreters.RunFailedError as error:
            print("ImportError" in str(error))
        team(2)
        runtime_variables.set_costs(round_ns=1e3)
        plr.pl_rank_exact(np.zeros(700), np.arange(700.0), plr.dcg_weights(60), n_threads=2)
    """)
    assert answer == "True\n"


@pytest.mark.parametrize(("left", "n_items"), [(20, 3), (60, 300), (120, 1500)])
def test_a_fit_without_room_for_its_matrices(left, n_items):
    """NumPy's linear algebra ends a process that has no memory left. Mutant: no estimate before."""
    code = f"""
        import resource, numpy as np, plrank_fast as plr
        items = np.arange({n_items})
        battles = np.concatenate([np.column_stack([items, (items + k) % {n_items}]) for k in (1, -1)])
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ({left} << 20),) * 2)
        try:
            plr.fit_strengths(battles)
        except MemoryError as error:
            print(error)
    """
    assert "strengths with their covariance needs" in run_python(code)
