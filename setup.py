"""Build of the compiled core: every compiler flag and Cython directive of the project stands in this file.

Switches (environment variables, read at build time):

``PLRANK_FAST_CHECKS=1``     bounds, None and initialisation checks in all Cython modules (slow; for one CI job).
``PLRANK_FAST_OPENMP=0``     build without OpenMP even where the compiler has it.
``PLRANK_FAST_SANITIZE=...`` passed on as ``-fsanitize=...``, with little optimization.
``PLRANK_FAST_LEVELS=...``   compile these SIMD levels, ``"baseline avx2"``, in place of all; the baseline always is.
``PLRANK_FAST_MODULES=...``  compile these modules, ``"_core/random/selection cython_plrank"``, and leave the others.

What was compiled with other switches is compiled again.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.modified import newer_group

PACKAGE = Path("plrank_fast")
KERNELS = PACKAGE / "kernels"
INCLUDE = PACKAGE / "include"
CHECKED = os.environ.get("PLRANK_FAST_CHECKS", "0") == "1"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "initializedcheck": CHECKED,
    "nonecheck": CHECKED,
    "overflowcheck": False,
    "wraparound": False,
    "cdivision": True,
    "binding": True,
    "embedsignature": False,
    "freethreading_compatible": True,
}

# Neither -march=native nor -ffast-math: a wheel is built once and runs anywhere, and -inf must stay -inf.
# Contraction into fused multiply-adds is off where the same bits are promised on every machine (the Cython modules)
# and on in the SIMD kernels, whose results are bit-identical within one level only.
UNIX_FLAGS = ["-O3", "-g0", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fvisibility=hidden"]
MODULE_FLAGS = [*UNIX_FLAGS, "-ffp-contract=off", "-Wno-psabi", "-Wno-unreachable-code"]
KERNEL_FLAGS = [*UNIX_FLAGS, "-ffp-contract=fast", "-Wno-psabi"]
# These prepare calls and have no loops over items; -O3 would take twice as long to compile them.
PREPARES = re.compile(r"plrank_fast\._core\.(runtime\.|gradients\.exact$|shared_utility)")
# A third of the time of -O3 to compile, and fewer accesses to memory are removed before a sanitizer has seen them.
SANITIZED_FLAGS = ["-O1", "-g1", "-fno-omit-frame-pointer"]
LEVEL_FLAGS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt"],
    "avx512": [
        *("-mavx512f", "-mavx512cd", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"),
        *("-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt", "-mprefer-vector-width=512"),
    ],
}

READS = re.compile(
    r'^ *(?:#include|cdef extern from) "([\w/]+\.[ch])"|^ *from plrank_fast\.([\w.]+) cimport', re.MULTILINE
)


@functools.cache
def files_read(path: Path) -> frozenset[Path]:
    """Return ``path`` and the files of the project that compiling it reads: includes, cimports and its own ``.pxd``."""
    names = [name for pair in READS.findall(path.read_text()) for name in pair if name]
    candidates = [KERNELS / name for name in names] + [INCLUDE / name for name in names]
    candidates += [PACKAGE / f"{name.replace('.', '/')}.pxd" for name in names]
    if path.suffix == ".pyx":
        candidates.append(path.with_suffix(".pxd"))
    return frozenset({path}.union(*(files_read(other) for other in candidates if other.exists() and other != path)))


def kernel_sources(path: Path) -> list[str]:
    """Return the kernel sources of a module: for each header that it names, the one beside it, or all in its folder.

    A header in a folder of its own, such as ``sampling/groups/group_samplers.h``, stands for the whole folder.
    """
    found: list[Path] = []
    for name in re.findall(r'^cdef extern from "([\w/]+\.h)"', path.read_text(), re.MULTILINE):
        header = KERNELS / name
        found += header.parent.glob(f"{header.stem}.c" if header.parent.parent == KERNELS else "*.c")
    return sorted(source.relative_to(KERNELS).as_posix() for source in found)


# The kernel sources of each module, which are compiled once per SIMD level and linked into it.
MODULES = {
    path.relative_to(PACKAGE).with_suffix("").as_posix(): kernel_sources(path)
    for path in sorted(PACKAGE.rglob("*.pyx"))
}

# Cython writes this module of its own functions, such as the type of compiled functions. Otherwise each module would
# have a copy of them, which is a third of the time that most modules take to compile.
SHARED = "plrank_fast._core.shared_utility"


def chosen(variable: str, known: Iterable[str]) -> list[str]:
    """Return the members of ``known``, in its order, that an environment variable names, or all if it names none."""
    known, names = list(known), os.environ.get(variable, "").split()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"{variable} must name some of {', '.join(known)}; got {' '.join(unknown)}")
    return [name for name in known if name in names or not names]


def check_tools() -> None:
    """End the build with the remedy, before anything takes time, where the compiler or Python's headers are missing."""
    remedy = (
        "Debian and Ubuntu: apt install gcc python3-dev; Fedora: dnf install gcc python3-devel; "
        "macOS: xcode-select --install"
    )
    if sys.platform == "win32":
        raise SystemExit("plrank-fast needs GCC or Clang: its kernels use vector extensions that MSVC does not have")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        raise SystemExit(f"plrank-fast needs a C compiler, and {compiler!r} was not found. {remedy}")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        raise SystemExit(f"plrank-fast needs the headers of Python, and {header} was not found. {remedy}")


class BuildKernels(build_ext):
    """``build_ext`` that compiles each module's kernel sources once per SIMD level and probes for OpenMP."""

    def finalize_options(self) -> None:
        """Compile on all processors unless told otherwise."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Check the tools, translate the Cython modules to C, compile those with the largest kernels first."""
        check_tools()
        translated = cythonize(
            self.extensions,
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            build_dir="build/checked" if CHECKED else None,
            nthreads=self.parallel,
        )
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        self.extensions.sort(key=lambda extension: -sum(map(bytes_read, kernels_of(extension))))
        folder = self.build_lib
        if self.editable_mode:  # its folders are temporary ones, in which nothing would be up to date
            ordinary = self.distribution.get_command_class("build")(self.distribution)
            ordinary.ensure_finalized()
            self.build_lib, self.build_temp = ordinary.build_lib, ordinary.build_temp
        super().run()
        self.build_lib = folder

    def build_extensions(self) -> None:
        """Compile the kernels, then the modules they are linked into."""
        self.levels = self.find_levels()
        openmp_compile, openmp_link = self.probe_openmp()
        kinds = os.environ.get("PLRANK_FAST_SANITIZE")
        sanitize = [f"-fsanitize={kinds}", *SANITIZED_FLAGS] if kinds else []
        have = [f"-DPLR_HAVE_{level.upper()}=1" for level in self.levels]
        self.kernel_flags = [*KERNEL_FLAGS, *openmp_compile, *sanitize]
        info = {
            "compiler": self.compiler_version(),
            "flags": " ".join([*MODULE_FLAGS, *openmp_compile, *sanitize]),
            "simd_levels": self.levels,
            "openmp": bool(openmp_compile),
            "checked": CHECKED,
        }
        levels = {level: LEVEL_FLAGS[level] for level in self.levels}
        switches = [info, self.compiler.compiler_so, self.kernel_flags, levels]
        for extension in self.extensions:
            own_flags = ["-O1"] if PREPARES.match(extension.name) else []
            extension.extra_compile_args = [*MODULE_FLAGS, *openmp_compile, *sanitize, *have, *own_flags]
            extension.extra_link_args = [*openmp_link, *sanitize]
            if extension.name.endswith(".simd"):
                extension.define_macros.append(("PLR_BUILD_INFO", json.dumps(json.dumps(info))))
            self.forget_other_switches(extension, json.dumps([*switches, *own_flags]))
        self.stale = [extension.name for extension in self.extensions if self.is_stale(extension)]
        self.number = itertools.count(1)
        super().build_extensions()

    def forget_other_switches(self, extension: Extension, switches: str) -> None:
        """Remove the objects and the module unless they were compiled with the present switches, and record these."""
        record = Path(self.build_temp, extension.name, "switches.json")
        if not (record.exists() and record.read_text() == switches):
            shutil.rmtree(record.parent, ignore_errors=True)
            Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            record.parent.mkdir(parents=True)
            record.write_text(switches)

    def is_stale(self, extension: Extension) -> bool:
        """Whether anything that a module is made of has changed since it was compiled."""
        path = self.get_ext_fullpath(extension.name)
        return bool(self.force or newer_group([*extension.sources, *extension.depends], path, "newer"))

    def build_extension(self, extension: Extension) -> None:
        """Compile the kernels of one module, then the module, if anything it is made of has changed."""
        if extension.name in self.stale:
            told = f"compiling {next(self.number)} of {len(self.stale)}: {extension.name}"
            kernels = kernels_of(extension)
            for level in self.levels if kernels else [""]:
                print(f"{told}{level and ', '}{level}", flush=True)
                for source in kernels:
                    extension.extra_objects += self.compile_kernel(source, extension, level)
        super().build_extension(extension)

    def compile_kernel(self, source: str, extension: Extension, level: str) -> list[str]:
        """Compile one kernel source for a level if a file that it reads has changed; return the objects."""
        path, folder = KERNELS / source, os.path.join(self.build_temp, extension.name, level)
        objects: list[str] = self.compiler.object_filenames([str(path)], output_dir=folder)
        define = [f"-DPLR_ISA={level}", f"-DPLR_ISA_{level.upper()}=1"]
        if self.force or newer_group(list(map(str, files_read(path))), objects[0], "newer"):
            self.compiler.compile(
                [str(path)],
                output_dir=folder,
                include_dirs=[str(KERNELS)],
                extra_postargs=[*self.kernel_flags, *LEVEL_FLAGS[level], *define],
            )
        return objects

    def try_compile(self, code: str, compile_args: list[str], link_args: list[str] | None = None) -> bool:
        """Whether ``code`` compiles (and links, when ``link_args`` is given); the compiler's words are swallowed."""
        folder = tempfile.mkdtemp()
        stderr = os.dup(2)
        devnull = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(devnull, 2)
            source = os.path.join(folder, "probe.c")
            Path(source).write_text(code)
            objects = self.compiler.compile([source], output_dir=folder, extra_postargs=compile_args)
            if link_args is not None:
                self.compiler.link_shared_object(objects, os.path.join(folder, "probe.so"), extra_postargs=link_args)
            return True
        except Exception:
            return False
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            os.close(devnull)
            shutil.rmtree(folder, ignore_errors=True)

    def find_levels(self) -> list[str]:
        """Levels to compile: of those that are wanted, all that target and compiler know."""
        wanted = dict.fromkeys(["baseline", *chosen("PLRANK_FAST_LEVELS", LEVEL_FLAGS)])
        levels = [level for level in wanted if level == "baseline" or self.level_works(level)]
        if os.environ.get("PLRANK_FAST_LEVELS", "").split() and len(levels) < len(wanted):
            refused = ", ".join(level for level in wanted if level not in levels)
            raise SystemExit(f"PLRANK_FAST_LEVELS names {refused}, which compiler or target does not know")
        return levels

    def level_works(self, level: str) -> bool:
        """Whether target and compiler know this SIMD level (an ARM target has only its baseline, NEON)."""
        code = "#if !defined(__x86_64__)\n#error not this architecture\n#endif\nint probe(void) { return 0; }\n"
        return self.try_compile(code, ["-Werror", *LEVEL_FLAGS[level]])

    def probe_openmp(self) -> tuple[list[str], list[str]]:
        """Flags for OpenMP, or none where it is absent or unwanted: its settings then have no effect."""
        if os.environ.get("PLRANK_FAST_OPENMP", "1") == "0":
            return [], []
        code = "#include <omp.h>\nint probe(void) { return omp_get_max_threads(); }\n"
        candidates = [(["-fopenmp"], ["-fopenmp"])]
        if sys.platform == "darwin":
            candidates.append((["-Xpreprocessor", "-fopenmp"], ["-lomp"]))
        for compile_args, link_args in candidates:
            if self.try_compile(code, compile_args, link_args):
                return compile_args, link_args
        return [], []

    def compiler_version(self) -> str:
        """First line of the compiler's ``--version``."""
        command = self.compiler.compiler_so[0]
        try:
            return subprocess.run([command, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
        except (OSError, IndexError):
            return f"{command} ({platform.machine()})"


class ReproducibleSdist(sdist):
    """``sdist`` whose archive has the same bits wherever and whenever it is made, if SOURCE_DATE_EPOCH is set.

    Setuptools does so for wheels only.
    """

    def make_archive(
        self, base_name: str, format: str, root_dir: Any = None, base_dir: Any = None, **owner: Any
    ) -> str:
        """Pack a folder with one date and no owner."""
        date = os.environ.get("SOURCE_DATE_EPOCH")
        if date is None or format != "gztar":
            return str(super().make_archive(base_name, format, root_dir, base_dir, **owner))

        def without_history(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime = int(date)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        path = base_name + ".tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", mtime=int(date), fileobj=file) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(os.path.join(root_dir or "", base_dir), base_dir, filter=without_history)
        return path


def extension(module: str, kernel_sources: list[str]) -> Extension:
    """Describe one Cython module; a change of any file that its compilation reads rebuilds it, and no other change."""
    sources = [PACKAGE / f"{module}.pyx", *(KERNELS / source for source in kernel_sources)]
    read = set().union(*map(files_read, sources))
    return Extension(
        "plrank_fast." + module.replace("/", "."),
        [str(sources[0])],
        include_dirs=[str(KERNELS), str(INCLUDE)],
        depends=sorted(map(str, read)),
    )


def bytes_read(source: str) -> int:
    """Return the size of a kernel source with all that it includes, which tells how long it takes to compile."""
    return sum(path.stat().st_size for path in files_read(KERNELS / source))


def kernels_of(extension: Extension) -> list[str]:
    """Return the kernel sources of a module."""
    return MODULES.get(extension.name.partition(".")[2].replace(".", "/"), [])


if __name__ == "__main__":
    setup(
        ext_modules=[
            Extension(SHARED, [str(PACKAGE / "_core" / "shared_utility.c")]),
            *(extension(module, MODULES[module]) for module in chosen("PLRANK_FAST_MODULES", MODULES)),
        ],
        cmdclass={"build_ext": BuildKernels, "sdist": ReproducibleSdist},
    )
