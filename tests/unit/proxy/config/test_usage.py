"""The keys of `usage`: where events go, and what is rejected."""

from pathlib import Path

import pytest

from proxy.config.usage import UsageFiles, UsageSettings, UsageTopic
from tests.support.process.settings import SMALLEST, read, rejected_key


def read_usage(tmp_path: Path, usage: str) -> UsageSettings:
    settings = read(tmp_path, SMALLEST + f"usage: {usage}").usage
    assert settings is not None
    return settings


def test_topic(tmp_path: Path) -> None:
    usage = read_usage(tmp_path, "{interval_seconds: 10, kafka: {topic: __quota_proxy_usage}}")
    assert (usage.interval_seconds, usage.kafka, usage.files) == (10, UsageTopic(), None)


def test_folder_is_relative_to_that_of_the_file(tmp_path: Path) -> None:
    assert read_usage(tmp_path, "{files: {folder: usage}}").files == UsageFiles(
        folder=str(tmp_path / "usage")
    )


def test_topic_and_files(tmp_path: Path) -> None:
    usage = read_usage(
        tmp_path, "{kafka: {topic: used}, files: {folder: /var/usage, max_bytes: 5000, keep: 2}}"
    )
    assert usage.kafka == UsageTopic(topic="used")
    assert usage.files == UsageFiles(folder="/var/usage", max_bytes=5000, keep=2)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", ("usage",)),
        ("{}", ("usage",)),
        ("{interval_seconds: 5}", ("usage",)),
        ("{files: {folder: x}, kafka: }", ("usage", "kafka")),
        ("{kafka: {}, interval_seconds: 0}", ("usage", "interval_seconds")),
        ("{kafka: {}, intervall_seconds: 5}", ("usage", "intervall_seconds")),
        ("{kafka: {topic: 'a b'}}", ("usage", "kafka", "topic")),
        ("{kafka: {topic: __quota_proxy_config}}", ("usage", "kafka", "topic")),  # that of quotas.store
        ("{files: {}}", ("usage", "files", "folder")),
        ("{files: {folder: x, keep: 0}}", ("usage", "files", "keep")),
    ],
)
def test_mistake_is_rejected_by_its_key(tmp_path: Path, text: str, key: tuple[str, ...]) -> None:
    assert rejected_key(tmp_path, SMALLEST + f"usage: {text}") == key
