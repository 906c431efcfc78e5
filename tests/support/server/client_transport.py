"""ClientTransport: a client's transport that keeps what is written."""

from typing import Any


class ClientTransport:
    """An open transport without a socket, until close()."""

    def __init__(self) -> None:
        self.written = b""
        self.open = True

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, pieces: list[bytes]) -> None:
        self.written += b"".join(pieces)

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return not self.open

    def close(self) -> None:
        self.open = False

    abort = close
