"""Secrets: read when they are needed, out of files or the environment, and kept nowhere."""

import os
from pathlib import Path
from typing import Final

from proxy.errors import UpstreamUnavailable


class SecretMissing(UpstreamUnavailable):
    """A password or token is not where the settings say it is; `env` tells which of the two they name."""

    def __init__(self, problem: str, env: bool) -> None:
        super().__init__(problem)
        self.env: Final = env


def read_secret(file: str | None, env: str | None) -> str:
    """The secret as it is now: of the variable where one is named, else the file's, without a newline at its
    end. Raises SecretMissing.
    """
    if env is not None:
        value = os.environ.get(env, "")
        if not value:
            raise SecretMissing(f"the environment variable {env} is not set", env=True)
        return value
    assert file is not None, "the settings name one of the two"
    try:
        value = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SecretMissing(f"{file} cannot be read: {error.strerror}", env=False) from error
    except UnicodeDecodeError as error:
        raise SecretMissing(f"{file} is not UTF-8 text", env=False) from error
    if not value:
        raise SecretMissing(f"{file} is empty", env=False)
    return value
