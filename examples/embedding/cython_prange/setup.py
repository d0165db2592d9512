from Cython.Build import cythonize
from setuptools import Extension, setup

# Nothing of plrank_fast has to be included or linked: Cython finds the functions when the module is imported.
extension = Extension(
    "batch_gradient", ["batch_gradient.pyx"], extra_compile_args=["-fopenmp"], extra_link_args=["-fopenmp"]
)

setup(
    name="batch-gradient",
    py_modules=[],
    ext_modules=cythonize(
        [extension], compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False}
    ),
)
