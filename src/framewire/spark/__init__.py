"""Recorded messages as tables: decoded, verified and written again by Spark, at the speed of the JVM.

>>> from framewire.spark import decode, session
>>> spark = session()  # doctest: +SKIP
>>> decode(spark.read.parquet("captures")).groupBy("identity").count().show()  # doctest: +SKIP

Names are looked up when they are first used: whoever only looks at a lake waits for no PySpark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from framewire.spark.decoding import decode
    from framewire.spark.encoding import encode
    from framewire.spark.pipeline import Pipeline
    from framewire.spark.sessions import session
    from framewire.spark.signatures import verify
    from framewire.spark.upgrading import Upgraded, upgrade

__all__ = ["Pipeline", "Upgraded", "decode", "encode", "session", "upgrade", "verify"]

_HOMES = {
    "Pipeline": "pipeline",
    "Upgraded": "upgrading",
    "decode": "decoding",
    "encode": "encoding",
    "session": "sessions",
    "upgrade": "upgrading",
    "verify": "signatures",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
