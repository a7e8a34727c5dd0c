"""The compiled parts, which an installation can do without; everything else is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            f"framewire.{name.replace('/', '.')}",
            [f"src/framewire/{name}.c"],
            extra_compile_args=["-O2"],
            optional=True,  # without a compiler the same is done in Python
        )
        for name in ("cluster/_zmqio", "wire/_moulds", "capture/_ledger")
    ]
)
