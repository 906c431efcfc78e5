"""No proxy: what the load pair does by itself, from which added latency is counted."""

from bench.peers.peer import Running, Setting


class Direct:
    """The fake broker itself."""

    name = "direct"

    def start(self, setting: Setting) -> Running:
        """Nothing to start."""
        return Running(self.name, setting.broker_port)
