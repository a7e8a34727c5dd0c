"""A pipeline in a process of its own, for tests that kill it."""

import sys
from pathlib import Path

from tests.spark.lakes import PERIODS, run

from framewire.spark import session

if __name__ == "__main__":
    directory, lake, captures, files = sys.argv[1:]
    spark = session("local[2]", brief=True, spark_sql_shuffle_partitions=2, spark_driver_memory="1g")
    run(spark, Path(directory), Path(lake), captures=captures, files_per_batch=int(files), **PERIODS)
