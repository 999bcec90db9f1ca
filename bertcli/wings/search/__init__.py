"""Semantic search: in files, and among stored vectors.

bm25         words in passages: BM25, and the fusion of two rankings
calls        the same from Python: `bertcli.search`, `bertcli.search_files`
command      `bertcli search`, made from the spec: opens what is searched, prints or writes the hits
examples     examples of `bertcli search` for `bertcli info`
files        search over files: passages are read, encoded (or taken from an index), and ranked by a query; **in which
             order hits come; which fields a hit has**
index        the file that `search --index` keeps: the vectors of files' passages, by a digest of each file; **what
             leaves an index, and when one is refused**
nearest      the rows of a file of vectors that are nearest to queries; **how many rows are compared at a time**
rows         the vectors of passages, dense or sparse: their arrays, and their scores with queries
spec         the options with their help, and for each of the two searches what a hit is; **which options search takes,
             and which of the two searches it is**
stored       the texts nearest to a query, among the vectors in a file; **whether stored vectors fit the model**
tables       how hits are printed; **how much of a passage is shown**
vectors      how passages and queries are encoded, and compared; **when a hit is near; how long a chunk is**
"""

from bertcli.extensions import Command, Extension

WING = Extension(
    "search",
    commands=(
        Command(
            "search",
            "Search",
            "Semantic search: find the texts nearest to a query, in files or among vectors that encode wrote.",
            module="bertcli.wings.search.command",
            position=1,
            other_words=("find", "query", "knn", "grep"),
        ),
    ),
    names=dict.fromkeys(("search", "search_files"), "bertcli.wings.search.calls"),
    examples="bertcli.wings.search.examples",
)
