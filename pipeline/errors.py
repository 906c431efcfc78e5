"""What can go wrong, in a sentence for whoever runs a job."""


class PipelineError(Exception):
    """Something that the user has to know and can act on; str() is the sentence to show."""


class InputError(PipelineError):
    """An option, a file or a source is not what a job takes."""
