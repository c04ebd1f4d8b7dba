"""Models from elsewhere, and the way back: explicit files of PRISM and Storm, stormpy.

>>> from rfmdp.sources import read_drn, write_prism_explicit  # convert one into the other
"""

from rfmdp.sources.drn import read_drn
from rfmdp.sources.drn_write import write_drn
from rfmdp.sources.explicit import ModelType, Written
from rfmdp.sources.prism_explicit import PrismFiles, read_prism_explicit
from rfmdp.sources.prism_explicit_write import write_prism_explicit
from rfmdp.sources.storm import Probabilities, from_stormpy, to_stormpy

__all__ = [
    "ModelType",
    "PrismFiles",
    "Probabilities",
    "Written",
    "from_stormpy",
    "read_drn",
    "read_prism_explicit",
    "to_stormpy",
    "write_drn",
    "write_prism_explicit",
]
