"""Errors that a job shows to its user."""


class PipelineError(Exception):
    """An error that the user can act on; str() is the sentence to show."""


class InputError(PipelineError):
    """An option, a file or a source is invalid."""
