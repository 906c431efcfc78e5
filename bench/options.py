"""The options that several benches have."""

import re
from argparse import ArgumentParser
from datetime import datetime


def bench_parser(module: str, description: str | None) -> ArgumentParser:
    """Return the parser of `python -m bench.MODULE`, with the name of the file of its results."""
    name = re.sub("[._]", "-", module)
    parser = ArgumentParser(prog=f"python -m bench.{module}", description=description)
    parser.add_argument(
        "--name",
        default=f"{name}-{datetime.now():%Y%m%d-%H%M%S}",
        help=f"name of the file in bench/results; default: `{name}` and the time",
    )
    return parser


def add_rounds(parser: ArgumentParser, what: str, default: int = 5) -> None:
    """Add the number of rounds. `what` describes a round."""
    parser.add_argument("--rounds", type=int, default=default, help=f"{what} (default: %(default)s)")


def add_quick(parser: ArgumentParser, what: str) -> None:
    """Add the option of a run that only checks the bench itself. `what` describes this run."""
    parser.add_argument("--quick", action="store_true", help=f"{what}, to check that it runs")
