"""How tests run here: enough examples to find things, few enough for a slow machine with two cores."""

import gc

from hypothesis import HealthCheck, settings

settings.register_profile(
    "framewire",
    max_examples=100,
    deadline=None,
    print_blob=True,
    # Messages of 20 fields are slow to draw on a busy machine; that says nothing about the code under test.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("framewire")

pytest_plugins = ["tests.secret_watch"]
"""No test may write a key."""


def pytest_collection_finish():
    """Leave what is there before the first test out of collections, of which many a test asks for a full one.

    That is most of what there ever is, all modules and thousands of tests: looking through it took 0.15 s a time.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    """Give it back, so that libraries do not hold it to be leaked when the interpreter ends."""
    gc.unfreeze()
