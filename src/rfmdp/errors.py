"""Every error that a user of rfmdp can meet.

A message says what must hold, where, what was found and what to try.
"""


class RfmdpError(Exception):
    """Root of all errors raised by rfmdp for bad input or an impossible request."""


class ModelError(RfmdpError, ValueError):
    """A model, an uncertainty set or a specification that is not well formed."""


class AssumptionAlarm(ModelError):
    """Samples that contradict an assumption of a guarantee: what was guaranteed is void."""


class PrismError(RfmdpError, ValueError):
    """A text in the PRISM language that cannot be read or built; carries its position."""


class UnsupportedError(RfmdpError, TypeError):
    """A combination of parts that do not fit, named before any work starts."""


class FileError(RfmdpError, ValueError):
    """A file that is missing, damaged, truncated or written by a newer version."""


class DataError(RfmdpError, ValueError):
    """Recorded data that are not as they must be; the message names the rows."""


class ResourceError(RfmdpError, MemoryError):
    """Work that does not fit into this machine's memory, refused before it starts."""


class SolverError(RfmdpError, RuntimeError):
    """A solver underneath (an LP, say) that ended in a state it must not end in."""


class NotCertifiedError(RfmdpError, RuntimeError):
    """A certified value was required, and the bounds are still apart."""


class PrismWarning(UserWarning):
    """Something in a model that is probably not meant, and what was made of it."""
