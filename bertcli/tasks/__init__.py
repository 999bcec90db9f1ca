"""What BERT is used for, as functions that take any iterable of texts and give records in input order."""

from bertcli.tasks.answer import answer as answer
from bertcli.tasks.classify import Accuracy as Accuracy
from bertcli.tasks.classify import classify as classify
from bertcli.tasks.encode import Block as Block
from bertcli.tasks.encode import Stream as Stream
from bertcli.tasks.encode import encode as encode
from bertcli.tasks.encode import encode_blocks as encode_blocks
from bertcli.tasks.encode import similarity as similarity
from bertcli.tasks.fill_mask import fill_mask as fill_mask
from bertcli.tasks.neighbors import neighbors as neighbors
from bertcli.tasks.rank import rank as rank
from bertcli.tasks.score import score as score
from bertcli.tasks.sparse import SparseBlock as SparseBlock
from bertcli.tasks.sparse import SparseStream as SparseStream
from bertcli.tasks.sparse import SparseVector as SparseVector
from bertcli.tasks.sparse import encode_sparse as encode_sparse
from bertcli.tasks.tag import tag as tag
from bertcli.tasks.task import Progress as Progress
from bertcli.tasks.task import Records as Records
from bertcli.tasks.task import RecordStream as RecordStream
from bertcli.tasks.tokenize import tokenize as tokenize
