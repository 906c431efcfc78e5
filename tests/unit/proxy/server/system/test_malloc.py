"""The allocator keeps freed memory, where the C library is glibc."""

import ctypes
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.server.system import malloc
from proxy.server.system.malloc import KEPT_BYTES, LARGEST_FROM_HEAP, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD

COUNTS_FAULTS = """
import resource, sys
from proxy.server.system.malloc import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
kept = bytearray(256 << 10)
before = faults()
for _ in range(500):
    bytearray(256 << 10)
print(faults() - before)
"""


def test_both_options_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []
    library = SimpleNamespace(mallopt=lambda *call: calls.append(call))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    malloc.keep_freed_memory()
    assert calls == [(M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, LARGEST_FROM_HEAP)]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = SimpleNamespace()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    malloc.keep_freed_memory()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_buffers_of_reads_are_not_faulted_in_again() -> None:
    found = {
        how: int(
            subprocess.run([sys.executable, "-c", COUNTS_FAULTS, how], capture_output=True, check=True).stdout
        )
        for how in ("kept", "default")
    }
    assert found["kept"] < 500
    assert found["kept"] <= found["default"]
