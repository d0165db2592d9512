from setuptools import Extension, setup

import plrank_fast

setup(
    name="worker-pool",
    py_modules=[],
    ext_modules=[
        Extension(
            "worker_pool",
            ["worker_pool.c"],
            include_dirs=[plrank_fast.get_include()],
            extra_compile_args=["-pthread"],
            extra_link_args=["-pthread"],
        )
    ],
)
