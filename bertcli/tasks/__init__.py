"""What BERT is used for, as functions that take any iterable of texts and give records in input order."""

from bertcli.tasks.accuracy import Accuracy
from bertcli.tasks.classify import classify
from bertcli.tasks.encode import Block, Stream, encode, encode_blocks
from bertcli.tasks.fill_mask import fill_mask
from bertcli.tasks.items import Records, RecordStream, Tally
from bertcli.tasks.neighbors import neighbors
from bertcli.tasks.score import score
from bertcli.tasks.similarity import similarity
from bertcli.tasks.tokenize import tokenize

__all__ = [
    "Accuracy",
    "Block",
    "RecordStream",
    "Records",
    "Stream",
    "Tally",
    "classify",
    "encode",
    "encode_blocks",
    "fill_mask",
    "neighbors",
    "score",
    "similarity",
    "tokenize",
]
