"""The number of cores."""

import os

from proxy.config.usable_cores import usable_cores


def test_the_cores_that_the_process_may_use() -> None:
    assert usable_cores() == len(os.sched_getaffinity(0))
