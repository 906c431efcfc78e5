"""No proxy: the load pair alone, the reference for added latency."""

from bench.peers.peer import Running, Setting


class Direct:
    """The fake broker itself."""

    name = "direct"

    def start(self, setting: Setting) -> Running:
        """Return the fake broker, which runs already."""
        return Running(self.name, setting.broker_port)
