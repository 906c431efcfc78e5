"""The options that several benches have."""

from bench.options import add_quick, add_rounds, bench_parser


def test_shared_options() -> None:
    parser = bench_parser("mutation_storm", "Storms.")
    add_rounds(parser, "phases of each kind", 3)
    add_quick(parser, "one round")
    usual = parser.parse_args([])
    assert usual.name.startswith("mutation-storm-2")
    assert (usual.rounds, usual.quick) == (3, False)
    chosen = parser.parse_args(["--name", "mine", "--rounds", "1", "--quick"])
    assert (chosen.name, chosen.rounds, chosen.quick) == ("mine", 1, True)
    words = " ".join(parser.format_help().split())
    assert "python -m bench.mutation_storm" in words
    assert "phases of each kind (default: 3)" in words
    assert "one round, to check that it runs" in words
