"""A certificate for the peers that end TLS, made for one run."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.peers.peer import Unavailable


@dataclass(frozen=True)
class Certificate:
    """Self-signed PEM files for `localhost`. HAProxy needs both in one file."""

    certificate: Path
    key: Path
    both: Path


def make_certificate(folder: Path) -> Certificate:
    """Make the certificate. Raises Unavailable if openssl is not installed."""
    if shutil.which("openssl") is None:
        raise Unavailable("openssl, which makes the certificate for TLS, is not installed; install it")
    made = Certificate(folder / "tls.pem", folder / "tls.key", folder / "tls.both.pem")
    if not made.both.exists():
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        command += [
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ]
        command += ["-keyout", str(made.key), "-out", str(made.certificate)]
        subprocess.run(command, check=True, capture_output=True)
        made.both.write_bytes(made.certificate.read_bytes() + made.key.read_bytes())
    return made
