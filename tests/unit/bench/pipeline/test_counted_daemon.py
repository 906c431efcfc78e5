"""The CPU time of Spark's Python workers is counted."""

import json
import subprocess
import sys

COUNT = [sys.executable, "-m", "bench.pipeline.counted", sys.executable, "-c"]
DAEMON = """
import time
from pyspark import daemon
from bench.pipeline import counted_daemon

def burn(sock, _):
    while time.process_time() < 0.5:
        pass
    sock.sendall(b"done")
    return 0

daemon.worker = burn
counted_daemon.main()
"""
STARTS_A_WORKER = f"""
import socket, subprocess, sys
process = subprocess.Popen(
    [sys.executable, "-c", {DAEMON!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
port = int.from_bytes(process.stdout.read(4), "big")
with socket.create_connection(("127.0.0.1", port)) as worker:
    received = b""
    while not received.endswith(b"done"):
        received += worker.recv(8)
process.communicate()
"""
STARTS_NONE = f"""
import subprocess, sys
subprocess.run(
    [sys.executable, "-c", {DAEMON!r}], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
)
"""


def seconds(program: str) -> float:
    done = subprocess.run([*COUNT, program], capture_output=True, text=True, check=True)
    counted: float = json.loads(done.stdout.splitlines()[-1])["cpu_seconds"]
    return counted


def test_a_worker_that_has_ended_is_counted() -> None:
    """It burns 0.5 s, of which the imports of its daemon are no part."""
    assert seconds(STARTS_A_WORKER) > seconds(STARTS_NONE) + 0.3
