"""What all tests share."""

import gc
from typing import Final

from hypothesis import HealthCheck, settings

COLLECTOR_THRESHOLDS: Final = (20_000, 10, 10)
"""Of gc.set_threshold. With Python's 700 for the first, collections take half the time of a simulation."""

# A test that takes long on a busy machine is not wrong, nor is one that gives way to all else (`make test`).
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking all modules and tests, which stay, in each full collection.

    Few objects are old then, so a test that makes some thousands would otherwise have dozens of full ones.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
