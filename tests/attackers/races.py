"""Every function of batches under ThreadSanitizer, on teams whose threads have all been given work.

    make tsan

builds the library with Clang, its OpenMP and ThreadSanitizer beside everything else, and calls this. GCC's OpenMP will
not do: ThreadSanitizer cannot see how its threads wait for each other, and reports races where there are none. LLVM's
tells it, through Archer. An interpreter has to be built too, whose ``main`` is instrumented.

Four programs run in it. A race made on purpose must be reported, and the same loop without it must not be, or silence
would mean nothing. Then come all calls of ``tests/public_calls.py`` from one Python thread, as batches
that a team shares and as one long query that it cuts into parts, and from four Python threads at once, each with a team
of its own. Every report is an error, and so is a function whose work was never shared.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALLS = Path(__file__).with_name("calls_on_teams.py")
REPORT = "WARNING: ThreadSanitizer"
PROGRAMS = ("race", "no_race", "one_caller", "four_callers")  # of calls_on_teams.py

INTERPRETER = """
#include <Python.h>
int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }
"""
RACE = """
#include <omp.h>
static double sums[64];
void add(int together)
{
    #pragma omp parallel for num_threads(2) schedule(static, 1)
    for (int i = 0; i < 1000; i++)
        sums[together ? 0 : 32 * omp_get_thread_num()] += i;
}
"""


def compile_c(compiler: str, code: str, output: Path, *flags: str) -> None:
    """One C file, instrumented."""
    source = output.with_suffix(".c")
    source.write_text(code)
    subprocess.run([compiler, "-g", "-O1", "-fsanitize=thread", str(source), "-o", str(output), *flags], check=True)


def build_interpreter(compiler: str, folder: Path) -> Path:
    """``python`` in a folder, of this Python's library, and ``race.so``."""
    settings = sysconfig.get_config_vars()
    library = settings["LDLIBRARY"].removeprefix("lib").rpartition(".")[0]
    interpreter = folder / "python"
    compile_c(
        compiler, INTERPRETER, interpreter, f"-I{settings['INCLUDEPY']}", f"-L{settings['LIBDIR']}",
        f"-Wl,-rpath,{settings['LIBDIR']}", f"-l{library}", "-rdynamic", *shlex.split(settings["LIBS"]), "-lm",
    )  # fmt: skip
    compile_c(compiler, RACE, folder / "race.so", "-fopenmp", "-fPIC", "-shared")
    return interpreter


def archer(compiler: str) -> Path:
    """Return the library beside LLVM's OpenMP that tells ThreadSanitizer about it."""
    runtime = subprocess.run(
        [compiler, "-print-file-name=libomp.so"], capture_output=True, text=True, check=True
    ).stdout
    path = Path(runtime.strip()).resolve().with_name("libarcher.so")
    if not path.exists():
        raise SystemExit(f"no {path}: {compiler}'s OpenMP with Archer is needed (libomp-19-dev)")
    return path


def watch(program: str, interpreter: Path, compiler: str) -> tuple[int, int, str]:
    """Exit status, number of reports and output of one of ``PROGRAMS``."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OMP_TOOL_LIBRARIES": str(archer(compiler)),
        "TSAN_OPTIONS": "exitcode=0 ignore_noninstrumented_modules=1",
    }
    # memory of another process layout than it expects makes ThreadSanitizer end at once
    command = ["setarch", "-R", str(interpreter), str(CALLS), program]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True)
    return answer.returncode, answer.stderr.count(REPORT), answer.stdout + answer.stderr


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="races", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--compiler", default="clang", help="Clang that the library was built with (clang)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "tsan", help="for the interpreter")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    interpreter = build_interpreter(options.compiler, options.folder)
    failures = 0
    for program in PROGRAMS:
        status, reports, output = watch(program, interpreter, options.compiler)
        fine = status == 0 and (reports > 0) == (program == "race")
        print(
            f"{program}: {reports} reports, exit status {status}{'' if fine else ', NOT AS IT SHOULD BE'}", flush=True
        )
        if program != "race" or not fine:
            print(output, flush=True)
        failures += not fine
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
