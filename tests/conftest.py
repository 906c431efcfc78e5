"""What all tests share."""

import gc

from hypothesis import HealthCheck, settings

# A test that takes long on a busy machine is not wrong, nor is one that gives way to all else (`make test`).
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking all modules and tests, which stay, in each full collection."""
    gc.collect()
    gc.freeze()
