"""How hypothesis runs here: enough examples to find things, few enough for a slow machine with two cores."""

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
