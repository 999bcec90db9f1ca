"""The ONNX rules of GLiNER's ops, beside NumPy: the LSTM of padded and of packed graphs, pairs of words, scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.gliner import write_gliner

import bertcli
from bertcli.engine.padded_batch import pack_padded
from bertcli.network.ops import add_pairs, gather, label_scores
from bertcli.tracing.traced import Factor, Origins, Traced
from bertcli.wings.onnx.exporter import HIDDEN, exporter_of
from bertcli.wings.onnx.file import Export, write_parts
from bertcli.wings.onnx.session import Session, hidden_states

NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-5}


@pytest.mark.parametrize("packed", [False, True])
def test_onnx_reads_words_in_both_directions_as_numpy(tmp_path: Path, packed: bool) -> None:
    """Every token counts as a word here, and sentences have different lengths."""
    network: Any = bertcli.load(write_gliner(tmp_path / "model")).network

    def read(batch: Any) -> Any:
        return network.spans.lstm(network.spans.projection(network(batch)), batch.offsets)

    exporter = exporter_of(network, opset=20, packed=packed)
    file = tmp_path / "graph.onnx"
    write_parts(Export(exporter.graph, exporter.watch(lambda batch: {HIDDEN: read(batch)}), {}), file, two_files=False)
    ids, mask = np.random.default_rng(1).integers(6, 120, (3, 9)), np.arange(9) < np.array([[9], [1], [5]])
    batch, rows = pack_padded(ids, np.zeros_like(ids), mask)
    expected = read(batch)
    if packed:
        found = hidden_states(Session(file), batch)
    else:
        inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(ids)}
        found = Session(file)(inputs)[HIDDEN].reshape(-1, expected.shape[1])[rows]
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, **NEAR)


def test_onnx_scores_pairs_of_words_for_labels_as_numpy(tmp_path: Path) -> None:
    """Sentences of three words, with their first token as the label."""
    network: Any = bertcli.load(write_gliner(tmp_path / "model")).network
    spans, words = network.spans, 3
    starts, ends = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2])

    def scored(batch: Any, rows: list[Any], divided: Any) -> Any:
        first, last, sentences = rows
        hidden = spans.projection(network(batch))
        pairs = add_pairs(spans.from_start(hidden), spans.from_end(hidden), first, last, activation="relu")
        return label_scores(spans.output(pairs), divided(spans.label(gather(hidden, batch.first))), sentences)

    exporter = exporter_of(network, opset=20)
    sentences = len(exporter.batch.first)

    def constant(rows: Any) -> Any:
        """The same spans for every sentence, as a constant of the graph."""
        whole = np.tile(rows, sentences)
        axes = ((Factor("B", sentences), Factor("N", len(rows))),)
        name = exporter.graph.constant(rows.astype(np.int64))
        exporter.note(whole, Traced(whole, axes, Origins([name])))
        return whole

    def of_sentences(labels: Any) -> Any:
        value = exporter.value_of(labels)
        assert value is not None
        apart = value.divided(0, sentences)
        exporter.note(apart.array, apart)
        return apart.array

    given = [constant(rows) for rows in (starts, ends, np.repeat(0, 5))]
    made = exporter.watch(lambda batch: {HIDDEN: scored(batch, given, of_sentences)})
    file = tmp_path / "graph.onnx"
    write_parts(Export(exporter.graph, made, {}), file, two_files=False)
    ids, mask = np.random.default_rng(2).integers(6, 120, (4, words)), np.ones((4, words), bool)
    batch, _ = pack_padded(ids, np.zeros_like(ids), mask)
    firsts = np.repeat(np.arange(4) * words, 5)
    expected = scored(
        batch, [np.tile(starts, 4) + firsts, np.tile(ends, 4) + firsts, np.repeat(np.arange(4), 5)],
        lambda labels: labels[:, None],
    )  # fmt: skip
    inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(ids)}
    found = Session(file)(inputs)[HIDDEN]
    assert found.shape == (4, 5, 1)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(found.reshape(-1, 1), expected, rtol=0, atol=2e-6 * np.abs(expected).max())
