"""The values of quotas: float64 on the wire, and whole numbers to people."""

import math


def parse_number(value: object) -> float:
    """A number as YAML or the command line has it; YAML takes `1e6` for text. Raises ValueError."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            pass
        else:
            if math.isfinite(number):
                return number
    raise ValueError("expected a number")


def plain_number(value: float) -> int | float:
    """Whole numbers without a fraction."""
    return int(value) if value.is_integer() else value


def show_number(value: float) -> str:
    """As `plain_number`, for people and for `parse_number`."""
    return str(plain_number(value))
