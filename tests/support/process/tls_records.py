"""TLS 1.3 records of a hostile client: KeyUpdate messages, and records of any size.

Python's ssl sends neither. The keys come from the client's key log (RFC 8446, section 7.3).
"""

import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

HANDSHAKE: Final = 22
DATA: Final = 23
KEY_UPDATE: Final = b"\x18\0\0\x01\0"
"""update_not_requested: the server does not respond."""


class HostileClient:
    """A client whose handshake is OpenSSL's, and whose records after it are its own."""

    def __init__(self, ca: str, folder: Path, host: str = "localhost") -> None:
        self._log: Final = folder / f"keys-{id(self)}.log"
        context = ssl.create_default_context(cafile=ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.keylog_filename = str(self._log)
        self.received: Final = ssl.MemoryBIO()
        self.sent: Final = ssl.MemoryBIO()
        self.ssl: Final = context.wrap_bio(self.received, self.sent, server_hostname=host)
        self._secret = b""
        self._sequence = 0

    def do_handshake(self) -> None:
        """Take a step of the handshake; raises SSLWantReadError until it is complete."""
        self.ssl.do_handshake()
        for line in self._log.read_text().splitlines():
            label, _, secret = line.rpartition(" ")
            if label.startswith("CLIENT_TRAFFIC_SECRET_0"):
                self._secret = bytes.fromhex(secret)
        cipher = self.ssl.cipher()
        assert cipher is not None
        assert cipher[0] == "TLS_AES_256_GCM_SHA384"

    def connect(self, plain: socket.socket) -> None:
        """Shake hands over a socket."""
        while not self._secret:
            with suppress(ssl.SSLWantReadError):
                self.do_handshake()
            plain.sendall(self.sent.read())
            if not self._secret:
                self.received.write(plain.recv(1 << 16))

    def record(self, content: bytes, content_type: int = DATA, padding: int = 0) -> bytes:
        """The next record."""
        plain = content + bytes([content_type]) + bytes(padding)
        header = b"\x17\x03\x03" + (len(plain) + 16).to_bytes(2, "big")
        iv = int.from_bytes(self._expand(b"iv", 12), "big")
        nonce = (iv ^ self._sequence).to_bytes(12, "big")
        self._sequence += 1
        return header + AESGCM(self._expand(b"key", 32)).encrypt(nonce, plain, header)

    def key_update(self, padding: int = 0) -> bytes:
        """A KeyUpdate: the records after it have new keys."""
        record = self.record(KEY_UPDATE, HANDSHAKE, padding)
        self._secret = self._expand(b"traffic upd", 48)
        self._sequence = 0
        return record

    def _expand(self, label: bytes, length: int) -> bytes:
        named = b"tls13 " + label
        info = length.to_bytes(2, "big") + bytes([len(named)]) + named + b"\0"
        return HKDFExpand(SHA384(), length, info).derive(self._secret)
