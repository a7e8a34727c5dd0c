"""Recorded messages as tables: decoded, verified and written again by Spark, at the speed of the JVM.

>>> from framewire.spark import decode, session
>>> spark = session()  # doctest: +SKIP
>>> decode(spark.read.parquet("captures")).groupBy("identity").count().show()  # doctest: +SKIP
"""

from framewire.spark.decoding import decode
from framewire.spark.encoding import encode
from framewire.spark.session import session
from framewire.spark.signatures import verify
from framewire.spark.upgrading import Upgraded, upgrade

__all__ = ["Upgraded", "decode", "encode", "session", "upgrade", "verify"]
