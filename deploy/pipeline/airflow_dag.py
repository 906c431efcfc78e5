"""Example DAGs for Airflow 3: ingest each hour, usage of each day, bill of each month. See deploy/README.md.

A run of Airflow has an interval: `data_interval_start` and `data_interval_end` are --from and --to, so a run
that is repeated for its date replaces what it wrote.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.docker.operators.docker import DockerOperator
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor
from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable
from docker.types import Mount

IMAGE = "quota-pipeline"
EVENTS = "kafka://kafka-1.internal:9092/__quota_proxy_usage"
LAKE = Mount(target="/lake", source="/srv/lake", type="bind")
CONFIG = Mount(target="/config", source="/etc/quota-pipeline", type="bind", read_only=True)
LATE = "3 days"
"""Events that come later are in `late/` of the lake, and in the bill if it is made after that."""
DEFAULTS = {"retries": 2, "retry_delay": timedelta(minutes=10), "execution_timeout": timedelta(hours=2)}
WINDOW = ["--from", "{{ data_interval_start | ds }}", "--to", "{{ data_interval_end | ds }}"]


def job(name: str, command: list[str]) -> DockerOperator:
    """A task that runs quota-pipeline with these arguments in its image."""
    return DockerOperator(
        task_id=name,
        image=IMAGE,
        command=command,
        mounts=[LAKE, CONFIG],
        mount_tmp_dir=False,
        network_mode="host",
        auto_remove="success",
    )


def make_dag(name: str, schedule: str) -> DAG:
    """A DAG whose runs have the interval between two times of the schedule (UTC), and never overlap."""
    return DAG(
        dag_id=name,
        schedule=CronDataIntervalTimetable(schedule, timezone="UTC"),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        default_args=DEFAULTS,
    )


with make_dag("quota_ingest", "10 * * * *"):
    job("ingest", ["ingest", "--stream", "once", "--late", LATE, "--events", EVENTS, "--out", "/lake"])


def wait_for(delta: timedelta) -> TimeDeltaSensor:
    """A task that waits until so long after the end of the interval; deferred, it occupies no worker."""
    return TimeDeltaSensor(task_id="wait", delta=delta, deferrable=True)


with make_dag("quota_usage", "0 0 * * *"):
    # The events of the last hour are in the lake when the next hour's ingest has ended.
    usage = job("usage", ["usage", "--events", "/lake/events", "--out", "/lake", *WINDOW])
    wait_for(timedelta(hours=1)) >> usage

with make_dag("quota_bill", "0 0 1 * *"):
    # Wait for late events of the month.
    wait = wait_for(timedelta(days=3, hours=1))
    bill = ["--events", "/lake/events", "--with-late", "--out", "/lake/bills/{{ data_interval_start | ds }}"]
    wait >> job("bill", ["chargeback", *bill, "--prices", "/config/prices.yaml", *WINDOW])
