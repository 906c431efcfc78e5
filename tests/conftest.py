"""What all tests share."""

from hypothesis import settings

# A test that takes long on a busy machine is not wrong.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
