"""`python -m bench`: every scenario on every peer, as ratios in one run. README.md says how to read it."""

import argparse
import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from rich.console import Console

from bench.output import machine
from bench.output.page import RESULTS
from bench.output.report import Report
from bench.output.summary import reference, summarize
from bench.peers import quota_proxy
from bench.peers.direct import Direct
from bench.peers.haproxy import HaProxy
from bench.peers.peer import Peer, Setting, StartFailed, Unavailable
from bench.peers.quota_proxy import BASELINE
from bench.peers.relay import Relay
from bench.rounds import DriveFailed, Sample, fake_broker, run
from bench.scenarios import SCENARIOS

PEERS: Final = ("direct", "relay", "haproxy", "proxy", "proxy-interpreted")
NO_TLS: Final = ("direct", "relay")
"""Peers that cannot end TLS."""
ROUNDS: Final = 5
QUICK_ROUNDS: Final = 2
OPEN_FILES: Final = 8192
PICTURE: Final = Path(__file__).parent.parent / "docs/images/cost.svg"


def find_peers(folder: Path, wanted: set[str], checkout: Path | None = None) -> tuple[list[Peer], list[str]]:
    """Return the peers that can run here, and a remark for each that cannot. An empty `wanted` means all.

    `checkout`: another checkout of the proxy, which then takes part as the baseline.
    """
    makers: list[Callable[[], Peer]] = [Direct, Relay, HaProxy]
    if checkout is not None:
        makers.append(lambda: quota_proxy.baseline(checkout))
    makers += [quota_proxy.installed, lambda: quota_proxy.interpreted(folder / "interpreted")]
    peers: list[Peer] = []
    remarks: list[str] = []
    for make in makers:
        try:
            peers.append(make())
        except Unavailable as reason:
            remarks.append(f"skipped: {reason}")
    return [peer for peer in peers if not wanted or peer.name in wanted | {BASELINE}], remarks


def measure(options: argparse.Namespace, console: Console) -> Report:
    """Run the scenarios that the options name."""
    scenarios = [each for each in SCENARIOS if not options.scenario or each.name in options.scenario]
    if options.quick:
        scenarios = [scenario.quick() for scenario in scenarios]
    rounds: int = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    samples: dict[str, dict[str, list[Sample]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as name, console.status("starting") as status:
        folder = Path(name)
        peers, remarks = find_peers(folder, set(options.peer), options.baseline)
        facts = machine.facts(peers)
        remarks = [*machine.warnings(), *remarks]
        for remark in remarks:
            console.print(remark, highlight=False, markup=False, soft_wrap=True)
        with fake_broker(folder, join=False) as port, fake_broker(folder, join=True) as joining_port:
            for scenario in scenarios:
                broker = joining_port if scenario.joined else port
                setting = Setting(broker, scenario.tenants, folder, scenario.tls, kinds=scenario.kinds)
                able = [peer for peer in peers if not scenario.tls or peer.name not in NO_TLS]
                samples[scenario.name], doubts = run(scenario, able, rounds, setting, status.update)
                remarks += doubts
    return Report(
        name=options.name,
        rounds=rounds,
        reference=reference([peer.name for peer in peers]) or "nothing",
        machine=facts,
        remarks=remarks,
        scenarios=scenarios,
        samples=samples,
        summaries={each.name: summarize(each, samples[each.name]) for each in scenarios},
    )


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure what the proxy costs beside other proxies."
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the requests and 2 rounds, to check that everything runs",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        help=f"rounds of each scenario; default: {ROUNDS}, or {QUICK_ROUNDS} with --quick",
    )
    parser.add_argument(
        "--scenario",
        action="append",
        default=[],
        choices=[each.name for each in SCENARIOS],
        help="run this scenario; repeatable; default: all",
    )
    parser.add_argument(
        "--peer", action="append", default=[], choices=PEERS, help="run this peer; repeatable; default: all"
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="CHECKOUT",
        help="run the proxy of another checkout, too; ratios are then relative to it",
    )
    parser.add_argument(
        "--anyway", action="store_true", help="write the results even if the machine was busy"
    )
    parser.add_argument(
        "--picture", action="store_true", help="write docs/images/cost.svg, too, of the scenarios that ran"
    )
    parser.add_argument(
        "--name",
        default=f"{datetime.now():%Y%m%d-%H%M%S}",
        help="name of the files in bench/results; default: the time of the run",
    )
    return parser.parse_args()


def main() -> None:
    """Run the command; exit with 1 and a message if a peer fails."""
    # Each of a thousand connections takes two descriptors in a proxy; peers inherit the limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    console = Console()
    options = arguments()
    if not options.quick and not options.anyway:
        with console.status("waiting until the load of the machine has fallen"):
            machine.await_quiet()
    before = machine.warnings()
    others = machine.Others()
    try:
        report = measure(options, console)
    except (StartFailed, DriveFailed) as error:
        sys.exit(f"bench: {error}")
    busy = [*before, *others.doubts()]
    report = replace(report, remarks=[*report.remarks, *others.doubts()])
    report.show(console)
    if busy and not options.anyway:
        sys.exit("bench: nothing is written, because the machine was busy; --anyway writes the results")
    written = report.save(RESULTS)
    if options.picture:
        PICTURE.write_text(report.picture().svg())
        written.append(PICTURE)
    for path in written:
        console.print(f"written: {path}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
