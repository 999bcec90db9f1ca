"""Semantic search: in files, and among stored vectors."""

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
            most_used=(
                "-i",
                "--index",
                "--hybrid",
                "--rerank",
                "--lines",
                "--in",
                "--texts",
                "--query-file",
                "--top-k",
                "-m",
                "-o",
                "--format",
            ),
            brief={
                "-i": "Search in .txt, .md, .csv, .tsv, .jsonl; a pattern",
                "--index": "Keep the vectors; only changed files are encoded",
                "--in": "Search among vectors that encode wrote",
                "-C": "Print N lines of the file around each hit",
                "--rerank": "Let this reranker order the best hits",
                "--hybrid": "Rank by keywords, too: BM25",
                "--query-file": "Read queries from a file",
            },
        ),
    ),
    names={"search": "bertcli.wings.search.stored", "search_files": "bertcli.wings.search.files"},
    examples="bertcli.wings.search.examples",
)
