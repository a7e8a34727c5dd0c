"""The mark of tests that need network namespaces."""


def pytest_configure(config):
    config.addinivalue_line("markers", "namespaces: makes network namespaces of its own; skipped where it may not")
