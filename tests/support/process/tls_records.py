"""Records of hostile clients: KeyUpdate messages and records of any size (TLS 1.3), renegotiations (TLS 1.2).

Python's ssl sends none of them. The keys come from the client's key log (RFC 8446, section 7.3; RFC 5246,
section 6.3).
"""

import hmac
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


class RenegotiatingClient:
    """A client of TLS 1.2 that asks for further handshakes on its connection."""

    def __init__(self, ca: str, folder: Path, host: str = "localhost") -> None:
        self._log: Final = folder / f"keys-{id(self)}.log"
        context = ssl.create_default_context(cafile=ca)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
        context.keylog_filename = str(self._log)
        self.received: Final = ssl.MemoryBIO()
        self._sent: Final = ssl.MemoryBIO()
        self.ssl: Final = context.wrap_bio(self.received, self._sent, server_hostname=host)
        self._hello = b""
        self._key = b""
        self._iv = b""
        self._sequence = 1  # the client's Finished was the first encrypted record

    def connect(self, plain: socket.socket) -> None:
        """Shake hands over a socket."""
        from_server = b""
        while not self._key:
            with suppress(ssl.SSLWantReadError):
                self.ssl.do_handshake()
                self._derive(from_server[11:43])
            sent = self._sent.read()
            self._hello = self._hello or sent[5:]
            plain.sendall(sent)
            if not self._key:
                some = plain.recv(1 << 16)
                from_server += some
                self.received.write(some)

    def _derive(self, server_random: bytes) -> None:
        words = self._log.read_text().split()
        at = words.index("CLIENT_RANDOM")
        client_random, secret = (bytes.fromhex(word) for word in words[at + 1 : at + 3])
        seed = b"key expansion" + server_random + client_random
        block, chain = b"", seed
        while len(block) < 40:
            chain = hmac.digest(secret, chain, "sha256")
            block += hmac.digest(secret, chain + seed, "sha256")
        self._key, self._iv = block[:16], block[32:36]

    def renegotiation(self) -> bytes:
        """The record that asks for another handshake."""
        return self.record(self._hello, HANDSHAKE)

    def record(self, content: bytes, content_type: int = DATA) -> bytes:
        """The next record."""
        number = self._sequence.to_bytes(8, "big")
        self._sequence += 1
        header = bytes([content_type]) + b"\x03\x03"
        authenticated = number + header + len(content).to_bytes(2, "big")
        sealed = number + AESGCM(self._key).encrypt(self._iv + number, content, authenticated)
        return header + len(sealed).to_bytes(2, "big") + sealed
