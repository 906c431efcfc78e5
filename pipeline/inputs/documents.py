"""Reads the YAML and JSON files that a job is given into typed values."""

import math
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from pipeline.errors import InputError
from proxy import bounded_yaml
from proxy.errors import spell

T = TypeVar("T")


def read_yaml(path: Path) -> Any:
    """Return the file's only document; JSON is YAML too. Raises InputError if there is none, or if a key
    occurs twice.
    """
    try:
        root = bounded_yaml.compose(bounded_yaml.read_text(path))
        twice = bounded_yaml.repeated_key(root)
        if twice is not None:
            raise InputError(
                f"{path}:{twice.second}: {spell(twice.path)}: duplicate key, first on line {twice.first}; "
                "keep one of them"
            )
        return bounded_yaml.construct(root)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason}") from error
    except bounded_yaml.OutOfBounds as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error


def _not_finite(value: Any, where: str) -> str:
    """Return the place of a number that is infinite or NaN; empty if there is none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else where
    if isinstance(value, dict):
        inside = [(f"{where}.{key}", part) for key, part in value.items()]
    elif isinstance(value, list):
        inside = [(f"{where}[{place}]", part) for place, part in enumerate(value)]
    else:
        return ""
    return next(filter(None, (_not_finite(part, place) for place, part in inside)), "")


def convert(value: Any, kind: type[T], path: Path, inside: str = "$") -> T:
    """Convert a value of the file to `kind`. InputError names the key and the expected value.

    YAML has infinity and NaN, but no file may use them.
    """
    odd = _not_finite(value, inside)
    if odd:
        raise InputError(f"{path}: {odd} is not a finite number")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {str(error).replace('$', inside, 1)}") from error
