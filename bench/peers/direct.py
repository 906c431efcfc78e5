"""No proxy: the load pair alone, the reference for added latency."""

from bench.peers.peer import Running, Setting


class Direct:
    """The fake broker itself."""

    name = "direct"

    def start(self, setting: Setting) -> Running:
        """Nothing to start."""
        return Running(self.name, setting.broker_port)
