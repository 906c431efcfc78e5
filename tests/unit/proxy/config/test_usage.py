"""The file's part about usage events: where they go, or a sentence that says what is wrong."""

from pathlib import Path

import pytest

from proxy.cli.check import describe
from proxy.config.settings import Settings
from proxy.config.usage import UsageFiles, UsageTopic
from proxy.errors import SettingsError
from tests.support.process.settings import SMALLEST, read


def read_usage(tmp_path: Path, usage: str) -> Settings:
    return read(tmp_path, SMALLEST + f"usage: {usage}")


def test_a_topic(tmp_path: Path) -> None:
    usage = read_usage(tmp_path, "{interval_seconds: 10, kafka: {topic: __quota_proxy_usage}}").usage
    assert usage is not None
    assert (usage.interval_seconds, usage.kafka, usage.files) == (10, UsageTopic(), None)


def test_folders_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    usage = read_usage(tmp_path, "{files: {folder: usage}}").usage
    assert usage is not None
    assert usage.files == UsageFiles(folder=str(tmp_path / "usage"))


def test_both(tmp_path: Path) -> None:
    settings = read_usage(
        tmp_path, "{kafka: {topic: used}, files: {folder: /var/usage, max_bytes: 5000, keep: 2}}"
    )
    assert settings.usage is not None
    assert settings.usage.files == UsageFiles(folder="/var/usage", max_bytes=5000, keep=2)
    line = "usage     events every 10 s to topic used and files in /var/usage (2 of 5000 bytes)"
    assert line in describe(settings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "usage: expected a mapping, got nothing; {} takes the defaults"),
        (
            "{files: {folder: x}, kafka: }",
            "usage.kafka: expected a mapping, got nothing; {} takes the defaults",
        ),
        ("{}", "usage: says nowhere to send events; give it kafka, files or both"),
        ("{interval_seconds: 5}", "usage: says nowhere to send events; give it kafka, files or both"),
        ("{kafka: {}, interval_seconds: 0}", "usage.interval_seconds: expected int >= 1, got 0"),
        ("{kafka: {topic: 'a b'}}", "usage.kafka.topic: expected text matching regex"),
        ("{files: {}}", "usage.files.folder: has to be given"),
        ("{files: {folder: x, keep: 0}}", "usage.files.keep: expected int >= 1, got 0"),
        (
            "{kafka: {topic: __quota_proxy_config}}",
            "usage.kafka.topic: __quota_proxy_config is the topic of quotas.store too; give each its own",
        ),
        ("{kafka: {}, intervall_seconds: 5}", "did you mean interval_seconds?"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_usage(tmp_path, text)
    assert expected in str(caught.value)
