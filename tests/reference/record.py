"""Record the goldens that the tests compare with: `python tests/reference/record.py`, in an environment with torch,
transformers and sentence-transformers (recorded with transformers 5.23.0, sentence-transformers 6.2.0, torch 2.13.0).

Every checkpoint comes from helpers/checkpoints.py, so only inputs' answers are stored: arrays in .npz, texts in .json.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.checkpoints import make  # noqa: E402
from reference import cases, oracle  # noqa: E402
from reference.lines import lines_of  # noqa: E402

Arrays = dict[str, NDArray[Any]]
LIMIT = 48  # positions of the default sizes


def networks(folder: Path) -> Arrays:
    """Selected activations of every head, activation, dtype and naming style."""
    arrays: Arrays = {}
    for salt, (name, checkpoint) in enumerate([*cases.network_cases(), *cases.bare_cases().items()]):
        model = oracle.load(make(folder / name, **checkpoint), checkpoint["head"])
        batch = cases.mixed_batch(model.config.vocab_size, model.config.type_vocab_size, salt)
        for part, value in oracle.outputs(model, batch).narrowed(batch).items():
            arrays[f"{name}.{part}"] = value
    return arrays


def masks_and_lengths(folder: Path) -> Arrays:
    """Hidden states under masks with holes, at lengths from 2 to the limit, and one set of attention weights."""
    model = oracle.load(make(folder / "masks", **cases.MASKS), "model")
    arrays = {"masks": oracle.hidden_states(model, cases.masked_batch(model.config.vocab_size))[-1]}
    model = oracle.load(make(folder / "attention", **cases.ATTENTION), "model")
    arrays["attention"] = oracle.attentions(model, cases.mixed_batch(model.config.vocab_size, 2, 1, (9, 5)))
    for name, (checkpoint, lengths) in cases.LENGTHS.items():
        model = oracle.load(make(folder / name, **checkpoint), "model")
        for length in lengths:
            batch = cases.mixed_batch(model.config.vocab_size, 2, length, (length,))
            arrays[f"{name}.{length}"] = oracle.hidden_states(model, batch)[-1, 0, cases.length_rows(length)]
    return arrays


def embeddings(folder: Path) -> Arrays:
    """Every pooling and several layers by transformers' hidden states; every sentence-transformers folder by itself."""
    path = make(folder / "encode", head="model", seed=209)
    model = oracle.load(path, "model")
    arrays: dict[str, list[NDArray[Any]]] = {}
    for kind, inputs in (("texts", [(text, None) for text in cases.TEXTS]), ("pairs", list(cases.PAIRS))):
        for text, pair in inputs:
            tokens = oracle.tokenized(path, text, pair, LIMIT)
            ids, segments = np.array([tokens["input_ids"]]), np.array([tokens["token_type_ids"]])
            batch = cases.Batch(ids, segments, np.ones_like(ids))
            states, pooled = oracle.hidden_states(model, batch)[:, 0], oracle.outputs(model, batch).pooled
            assert pooled is not None
            found = {"cls": states[-1, 0], "max": states[-1].max(axis=0), "pooler": pooled[0]}
            found |= {f"mean.{layer}": states[layer].mean(axis=0, dtype=np.float64) for layer in (0, 1, 2)}
            for name, value in found.items():
                arrays.setdefault(f"{kind}.{name}", []).append(value.astype(np.float32))
    stacked = {name: np.stack(rows) for name, rows in arrays.items()}
    for name, checkpoint in cases.SENTENCES.items():
        stacked[f"sentence.{name}"] = oracle.sentence_vectors(make(folder / name, **checkpoint), cases.TEXTS)
    return stacked


def answers(folder: Path) -> dict[str, Any]:
    """What the pipelines of transformers say: labels, fillings of masks, and log-probabilities of every token."""
    found: dict[str, Any] = {"classify": {}}
    inputs = [{"text": text} for text in cases.TEXTS]
    inputs += [{"text": text, "text_pair": pair} for text, pair in cases.PAIRS]
    for name, checkpoint in cases.CLASSIFIERS.items():
        classify = oracle.pipeline("text-classification", make(folder / name, **checkpoint), "classifier")
        found["classify"][name] = [classify(text, top_k=None, truncation=True) for text in inputs]
    path = make(folder / "nsp", **cases.NEXT_SENTENCE)
    model, rows = oracle.load(path, "nsp"), []
    for text, pair in cases.PAIRS:
        tokens = oracle.tokenized(path, text, pair, LIMIT)
        ids, segments = np.array([tokens["input_ids"]]), np.array([tokens["token_type_ids"]])
        probabilities = oracle.outputs(model, cases.Batch(ids, segments, np.ones_like(ids))).next_sentence
        assert probabilities is not None
        rows.append(probabilities[0].tolist())
    found["next_sentence"] = rows

    path = make(folder / "mlm", **(cases.MASKED_LM | {"head": "mlm"}))
    fill = oracle.pipeline("fill-mask", path, "mlm")
    fillings = [fill(text, top_k=5) for text in cases.MASKED_TEXTS]
    found["fill_mask"] = [one if isinstance(one[0], list) else [one] for one in fillings]
    found["targets"] = fill(cases.MASKED_TEXTS[0], targets=list(cases.TARGETS))
    found["score"] = [oracle.pseudo_log_likelihood(path, "mlm", text) for text in cases.SCORED_TEXTS]
    return found


def tokenizations(folder: Path) -> dict[str, Any]:
    """Ids and offsets of odd texts under every tokenizer setting, and how pairs are cut to a limit."""
    found: dict[str, Any] = {}
    for name, checkpoint in cases.TOKENIZERS.items():
        path = make(folder / name, **checkpoint)
        rows = [oracle.tokenized(path, text) for text in cases.ODD_TEXTS]
        found[name] = [[row["input_ids"], [list(span) for span in row["offset_mapping"]]] for row in rows]
    path = make(folder / "truncation")
    found["truncations"] = []
    for first, second, limit in cases.TRUNCATIONS:
        row = oracle.tokenized(path, *cases.truncated_pair(first, second), limit)
        found["truncations"].append([row["input_ids"], row["token_type_ids"]])
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, record in (("networks", networks), ("shapes", masks_and_lengths), ("embeddings", embeddings)):
            np.savez_compressed(HERE / f"{file}.npz", allow_pickle=False, **record(folder / file))
        for file, answer in (("answers", answers), ("tokenizations", tokenizations)):
            (HERE / f"{file}.json").write_text(lines_of(answer(folder / file)), encoding="utf-8")


if __name__ == "__main__":
    main()
