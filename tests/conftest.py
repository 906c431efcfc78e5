"""What all tests share."""

import gc

from hypothesis import settings

# A test that takes long on a busy machine is not wrong.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking all modules and tests, which stay, in each full collection."""
    gc.collect()
    gc.freeze()
