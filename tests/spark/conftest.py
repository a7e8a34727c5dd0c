"""One Spark session for all tests of this folder."""

import pytest

from framewire.spark import session

PANDAS = "ignore:PySpark does not yet fully support pandas:FutureWarning"


def pytest_collection_modifyitems(items):
    # PySpark's own opinion of the pandas that is installed; nothing here uses it.
    for item in items:
        if "tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.filterwarnings(PANDAS))


@pytest.fixture(scope="session")
def spark():
    started = session("local[2]", brief=True, spark_sql_shuffle_partitions=2, spark_driver_memory="2g")
    yield started
    started.stop()
