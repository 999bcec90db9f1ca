"""What BERT is used for, as functions that take any iterable of texts and give records in input order."""

from bertcli.tasks.answer import answer
from bertcli.tasks.classify import Accuracy, classify
from bertcli.tasks.encode import Block, Stream, encode, encode_blocks, similarity
from bertcli.tasks.fill_mask import fill_mask
from bertcli.tasks.neighbors import neighbors
from bertcli.tasks.rank import rank
from bertcli.tasks.score import score
from bertcli.tasks.sparse import SparseBlock, SparseStream, SparseVector, encode_sparse
from bertcli.tasks.tag import tag
from bertcli.tasks.task import Progress, Records, RecordStream
from bertcli.tasks.tokenize import tokenize

__all__ = [
    "Accuracy",
    "Block",
    "Progress",
    "RecordStream",
    "Records",
    "SparseBlock",
    "SparseStream",
    "SparseVector",
    "Stream",
    "answer",
    "classify",
    "encode",
    "encode_blocks",
    "encode_sparse",
    "fill_mask",
    "neighbors",
    "rank",
    "score",
    "similarity",
    "tag",
    "tokenize",
]
