import socket
import subprocess
import sys
from itertools import pairwise

import pytest

from proxy.demo import ports
from proxy.demo.ports import free_port_range, free_ports


def test_ports_can_be_listened_at_and_differ() -> None:
    given = free_ports(20)
    assert len(set(given)) == 20
    for port in given:
        socket.create_server(("127.0.0.1", port)).close()


def test_all_ports_of_a_range_are_free() -> None:
    first = free_port_range(10)
    for port in range(first, first + 10):
        socket.create_server(("127.0.0.1", port)).close()


def test_no_port_is_returned_twice() -> None:
    given = sorted((free_port_range(count), count) for count in [7, 70, 1] * 10)
    assert all(first + count <= other for (first, count), (other, _) in pairwise(given))


def test_another_process_gets_no_port_of_the_blocks_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_left", [])
    first = free_port_range(4)
    program = (
        "from proxy.demo import ports\n"
        f"ports._CANDIDATES = range({first - 1}, {first - 1 + ports._BLOCK})\n"
        "print(ports.free_port_range(1))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("OSError: ")


def test_a_forked_process_gets_other_ports() -> None:
    program = (
        "import os\n"
        "from proxy.demo.ports import free_ports\n"
        "free_ports(1)\n"
        "child = os.fork()\n"
        "os.write(1, (' '.join(map(str, free_ports(20))) + '\\n').encode())\n"  # in one piece
        "os.waitpid(child, 0) if child else os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    one, other = (set(line.split()) for line in done.stdout.splitlines())
    assert len(one) == len(other) == 20
    assert one.isdisjoint(other)


def test_a_port_in_use_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_port_range(5)
    monkeypatch.setattr(ports, "_left", [])
    monkeypatch.setattr(ports, "_CANDIDATES", range(first, first + 5))
    with socket.create_server(("127.0.0.1", first + 2)):
        with pytest.raises(OSError, match=rf"\b3 .*\b{first}\b"):
            free_port_range(3)
        assert free_port_range(2) == first + 3
        assert free_port_range(1) == first + 1


def test_a_range_longer_than_a_block_is_an_error() -> None:
    with pytest.raises(OSError, match=rf"\b{ports._BLOCK} "):
        free_port_range(ports._BLOCK)
