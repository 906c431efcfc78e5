"""The jobs that read events and write a table: a table of contents."""

from pipeline.jobs.job import Job
from pipeline.transforms.usage import usage


def write_usage(job: Job, by: str) -> None:
    """`usage/`: what each tenant did on each partition, by hour or day."""
    job.write("usage", usage(job.events(), by))
