"""Attention weights as a document: for CSV and Markdown a matrix headed by tokens, for JSON added to the trace."""

from __future__ import annotations

from bertcli.attention.weights import Attention, Choice
from bertcli.output.document import Document
from bertcli.output.table import Column
from bertcli.tracing import Trace


def attention_document(attention: Attention, choice: Choice, trace: Trace) -> Document:
    """Rows are queries, columns are keys; columns of CSV are numbered, since a token may occur twice."""
    selected = attention.select(choice)
    columns = [Column("Token"), *(Column(label, number=True) for label in selected.labels)]
    rows = [
        [label, *(f"{float(weight):.4f}" for weight in weights)]
        for label, weights in zip(selected.labels, selected.weights, strict=True)
    ]
    heads = [f"{i} {piece}" for i, piece in enumerate(selected.pieces)]
    lines = [
        {"token": piece, **dict(zip(heads, weights.tolist(), strict=True))}
        for piece, weights in zip(selected.pieces, selected.weights, strict=True)
    ]
    record = {**trace.record(), "attention": attention.record(choice)}
    return Document(columns, rows, [selected.title], record, lines)
