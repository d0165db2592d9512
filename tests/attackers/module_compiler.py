"""Compile one module of a tree after one of its files has changed, and no more of it than needs be.

``setup.py`` looks at everything and optimises fully: half a minute for a large module. Here Cython runs in a fork of a
process that has imported it, its C is compiled with ``-O1``, which changes no result, and a kernel is compiled only
where the changed file is one of those that it was made of. Kernels have their own flags, and every SIMD level.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from Cython.Compiler import Main, Options


class CompilationError(Exception):
    """The compiler refuses a source."""


class ModuleCompiler:
    """Objects of the modules of a tree as it is without a change, and with one."""

    def __init__(self, tree: Path, levels: Iterable[str], openmp: bool) -> None:
        self.tree = tree
        setup = runpy.run_path(str(tree / "setup.py"))
        self.kernels: dict[str, list[str]] = setup["MODULES"]
        self.directives: dict[str, object] = setup["DIRECTIVES"]
        self.levels = {level: setup["LEVEL_FLAGS"][level] for level in levels}
        threads = ["-fopenmp"] if openmp else []
        include = [f"-I{tree / 'plrank_fast' / folder}" for folder in ("kernels", "include")]
        have = [f"-DPLR_HAVE_{level.upper()}=1" for level in self.levels] + ['-DPLR_BUILD_INFO="{}"']
        self.module_flags = [*setup["MODULE_FLAGS"], "-O1", *threads, *have, *include]
        self.module_flags.append(f"-I{sysconfig.get_paths()['include']}")
        self.kernel_flags = [*setup["KERNEL_FLAGS"], *threads, *include]
        self.link_flags = ["-shared", *threads]
        self.suffix = sysconfig.get_config_var("EXT_SUFFIX")
        self.units: dict[str, dict[str, tuple[bytes, set[str]]]] = {}  # of a module: name, object, its files

    def library(self, module: str) -> Path:
        """Where Python looks for the module."""
        return self.tree / "plrank_fast" / f"{module}{self.suffix}"

    def prepare(self, module: str) -> None:
        """Compile all units of a module, as they are when nothing is changed."""
        if module not in self.units:
            names = ["module", *(f"{level} {kernel}" for kernel in self.kernels[module] for level in self.levels)]
            self.units[module] = {name: self._unit(module, name) for name in names}

    def with_change(self, module: str, path: str) -> bool:
        """Put the module in its place with the changed file compiled; False if the code is as it was.

        Raises CompilationError for a source that does not compile.
        """
        units = dict(self.units[module])
        for name, (_, files) in self.units[module].items():
            if path in files:
                units[name] = self._unit(module, name)
        if all(units[name][0] == content for name, (content, _) in self.units[module].items()):
            return False
        self._link(module, [content for content, _ in units.values()])
        return True

    def _unit(self, module: str, name: str) -> tuple[bytes, set[str]]:
        """The object of a unit, and the files of the tree that it is made of."""
        if name == "module":
            source, pyx = self._translated(module), {f"plrank_fast/{module}.pyx"}
            return self._object(source, self.module_flags, pyx)
        level, kernel = name.split()
        flags = [*self.kernel_flags, *self.levels[level], f"-DPLR_ISA={level}", f"-DPLR_ISA_{level.upper()}=1"]
        return self._object(self.tree / "plrank_fast" / "kernels" / kernel, flags, set())

    def _object(self, source: Path, flags: list[str], files: set[str]) -> tuple[bytes, set[str]]:
        made, needs = self.tree / "unit.o", self.tree / "unit.d"
        command = ["cc", *flags, "-fPIC", "-MMD", "-MF", str(needs), "-c", str(source), "-o", str(made)]
        self._run(command)
        words = needs.read_text().replace("\\\n", " ").split()[1:]
        own = {Path(word).resolve() for word in words}
        inside = {path.relative_to(self.tree).as_posix() for path in own if path.is_relative_to(self.tree)}
        return made.read_bytes(), files | inside

    def _translated(self, module: str) -> Path:
        """The C of a Cython file, made in a fork: Cython keeps what it has read of files that are about to change."""
        made = self.tree / "unit.c"
        made.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.chdir(self.tree)
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, 1)
                os.dup2(nowhere, 2)
                options = Options.CompilationOptions(
                    Options.default_options, compiler_directives=self.directives, output_file=str(made)
                )
                name = f"plrank_fast.{module.replace('/', '.')}"
                result = Main.compile(f"plrank_fast/{module}.pyx", options, full_module_name=name)
                status = int(result.num_errors > 0)
            finally:
                os._exit(status)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not made.exists():
            raise CompilationError(module)
        return made

    def _link(self, module: str, objects: list[bytes]) -> None:
        """As a new file: one that a process has mapped must not change under it."""
        files = []
        for number, content in enumerate(objects):
            files.append(self.tree / f"unit{number}.o")
            files[-1].write_bytes(content)
        new = self.tree / "unit.so"
        self._run(["cc", *map(str, files), *self.link_flags, "-o", str(new)])
        os.replace(new, self.library(module))
        for file in files:
            file.unlink()

    def _run(self, command: list[str]) -> None:
        result = subprocess.run(command, cwd=self.tree, capture_output=True, text=True, errors="replace")
        if result.returncode:
            raise CompilationError(result.stderr[-2000:])
