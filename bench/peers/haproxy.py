"""HAProxy in TCP mode: the cost of a proxy in C that reads nothing of the protocol."""

import shutil
import subprocess
from typing import Final

from bench.peers.peer import HOST, Running, Setting, Unavailable, free_ports, launch
from bench.peers.tls import make_certificate

# One thread, like the quota proxy; otherwise HAProxy's defaults.
CONFIGURATION: Final = """\
global
    nbthread 1
    maxconn 2000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen kafka
    bind {host}:{port}{tls}
    server broker {host}:{broker_port}
"""


class HaProxy:
    """Debian's package `haproxy`, run in the foreground."""

    name = "haproxy"

    def __init__(self) -> None:
        path = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
        if path is None:
            raise Unavailable("haproxy is not installed; run `apt-get install haproxy`")
        self._path = path

    @property
    def version(self) -> str:
        """The first line of `haproxy -v`."""
        done = subprocess.run([self._path, "-v"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0]

    def start(self, setting: Setting) -> Running:
        """Write a configuration and serve it."""
        port = setting.port or free_ports(1)[0]
        file = setting.folder / "haproxy.cfg"
        tls = f" ssl crt {make_certificate(setting.folder).both}" if setting.tls else ""
        text = CONFIGURATION.format(host=HOST, port=port, broker_port=setting.broker_port, tls=tls)
        file.write_text(text)
        return launch(self.name, [self._path, "-db", "-f", str(file)], setting, port)
