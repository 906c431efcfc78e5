"""Reading passwords and tokens. They are read from files or the environment at each use, and not stored."""

import os
from pathlib import Path
from typing import Final

from proxy.errors import UpstreamUnavailable


class SecretMissing(UpstreamUnavailable):
    """A password or token cannot be read. `env` tells whether the settings name a variable or a file."""

    def __init__(self, problem: str, env: bool) -> None:
        super().__init__(problem)
        self.env: Final = env


def read_secret(file: str | None, env: str | None) -> str:
    """The current value of the variable if one is named, otherwise the content of the file without a newline
    at its end. Raises SecretMissing.
    """
    if env is not None:
        value = os.environ.get(env, "")
        if not value:
            raise SecretMissing(f"the environment variable {env} is not set", env=True)
        return value
    assert file is not None, "the settings name a file or a variable"
    try:
        value = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SecretMissing(f"cannot read {file}: {error.strerror}", env=False) from error
    except UnicodeDecodeError as error:
        raise SecretMissing(f"{file} is not UTF-8 text", env=False) from error
    if not value:
        raise SecretMissing(f"{file} is empty", env=False)
    return value
