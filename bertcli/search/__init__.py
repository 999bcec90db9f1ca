"""The rows of a file of vectors that are nearest to a query."""

from bertcli.search.exact import Nearest, nearest
from bertcli.search.opening import open_vectors
from bertcli.search.stored import Stored

__all__ = ["Nearest", "Stored", "nearest", "open_vectors"]
