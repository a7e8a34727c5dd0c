"""One Spark session for all tests of this folder."""

import pytest

from framewire.spark import session

PANDAS = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def pytest_collection_modifyitems(items):
    # PySpark's own opinion of the pandas that is installed; nothing here uses it.
    for item in items:
        if "tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.filterwarnings(PANDAS))


QUICK = "-XX:TieredStopAtLevel=1"
"""For runs of seconds: more than half of what a short run costs goes into compiling for a long one."""


@pytest.fixture(scope="session")
def spark():
    started = session(
        "local[2]",
        spark_sql_shuffle_partitions=2,
        spark_driver_memory="2g",
        spark_driver_extraJavaOptions=QUICK,
    )
    yield started
    started.stop()
