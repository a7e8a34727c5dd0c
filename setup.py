"""The one compiled part, which an installation can do without; everything else is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "framewire.cluster._zmqio",
            ["src/framewire/cluster/_zmqio.c"],
            extra_compile_args=["-O2"],
            optional=True,  # without a compiler the same calls go through pyzmq
        )
    ]
)
