"""Has glibc keep freed memory for the next read instead of returning it to the kernel.

Each read of a busy connection allocates a buffer of 256 KiB. By default, glibc returns such a buffer to the
kernel when it is freed, and the next read faults it in again, which costs a third of the CPU time of large
fetches.
"""

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
"""The numbers of these parameters in mallopt(3)."""
KEPT_BYTES: Final = 64 << 20
"""Free memory at the top of the heap that stays: enough for the buffers of some 250 reads at once."""
LARGEST_FROM_HEAP: Final = 32 << 20
"""Smaller buffers come from the heap, not from mmap; this is the largest value that glibc accepts."""


def keep_freed_memory() -> None:
    """Configure the allocator of this process; does nothing with another C library."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, LARGEST_FROM_HEAP)
