"""What is made of stretches in which replicas change."""

from bench.replication.ends import STRETCH_SECONDS, STRETCHES, Stretch, report


def test_every_change_fits_into_its_stretch() -> None:
    assert max(STRETCHES.values()) < STRETCH_SECONDS


def test_the_report_has_every_stretch_and_what_they_come_to() -> None:
    lines = report(
        [Stretch("none", 0.01, 0.011), Stretch("at the end", 0.01, 0.02), Stretch("none", 0.01, 0.009)]
    )
    assert "| at the end | 20.00 | 10.00 | 2.00 |" in lines
    assert "| none | 11.00 | 10.00 | 1.10 |" in lines
    assert "| none | 1.00 | 0.90 | 1.10 |" in lines
    assert not [line for line in lines if line.startswith("| all along |")]
