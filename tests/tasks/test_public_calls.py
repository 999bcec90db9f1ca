"""Every family, head and pooling through the public calls, against the values that are recorded of its network.

Each id has a word of its own, and no special tokens are put around a text: texts have exactly the recorded ids.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.json_files import read_json, write_json
from helpers.near import assert_near
from numpy.typing import NDArray
from reference.family_cases import CASES, COLUMNS, Case, recorded_rows
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import bertcli
from bertcli.model import Model
from bertcli.tasks.encode import Pooling

Array = NDArray[Any]
RECORDED = Path(__file__).parents[1] / "reference" / "families"


class Texts:
    """The sentences of a case as texts; with `paired` each in two halves."""

    def __init__(self, case: Case, paired: bool) -> None:
        batch = case.batch()
        lengths = batch.mask.sum(axis=1).tolist()
        self.ids = [ids[:length].tolist() for ids, length in zip(batch.ids, lengths, strict=True)]
        self.segments = [segments[:length].tolist() for segments, length in zip(batch.segments, lengths, strict=True)]
        cuts = [(length + 1) // 2 if paired else length for length in lengths]
        self.texts = [words(ids[:cut]) for ids, cut in zip(self.ids, cuts, strict=True)]
        self.pairs = [words(ids[cut:]) for ids, cut in zip(self.ids, cuts, strict=True)] if paired else None
        self.offsets = np.cumsum([0, *lengths])
        self.rows = recorded_rows(batch)

    def of_network(self, model: Model, head: str, query: str | None = None) -> list[Array]:
        """What the head says of each sentence, alone in a batch: [output], or [token, output].

        With a query of each sentence whose first half is replaced by that.
        """
        ids, segments = self.ids, self.segments
        if query is not None:
            first, seconds = ids_of_words(query), [ids_of_words(pair) for pair in self.pairs or ()]
            second = int(model.config.segment_count > 1)
            ids = [[*first, *ids] for ids in seconds]
            segments = [[0] * len(first) + [second] * len(ids) for ids in seconds]
        return [model.outputs([row], [of])[head][0] for row, of in zip(ids, segments, strict=True)]


def words(ids: Sequence[int]) -> str:
    return " ".join(f"w{id}" for id in ids)


def ids_of_words(text: str) -> list[int]:
    return [int(word[1:]) for word in text.split()]


def opened(folder: Path, case: Case) -> Model:
    """The case's checkpoint with a tokenizer of words; the first token of the case is the mask."""
    make_family(folder, case.family, case.head, **case.checkpoint)
    rows = read_json(folder / "config.json")["vocab_size"]
    tokenizer = Tokenizer(models.WordLevel({f"w{id}": id for id in range(rows)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A:0", pair="$A:0 $B:1", special_tokens=[])
    tokenizer.save(str(folder / "tokenizer.json"))
    mask = words([case.batch().ids[0, 0]])
    write_json(folder / "tokenizer_config.json", {"mask_token": mask, "unk_token": "w0"})
    return bertcli.load(folder)


def recorded(name: str, part: str) -> Array:
    with np.load(RECORDED / f"{CASES[name].family}.npz") as arrays:
        return np.asarray(arrays[f"{name}/{part}"], np.float64)


def close(found: Any, expected: Any) -> None:
    assert_near(found, expected, 1e-5)


def probabilities(logits: Any) -> Array:
    powers = np.exp(np.asarray(logits, np.float64))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def of_head(head: str) -> list[str]:
    return [name for name, case in CASES.items() if case.head == head]


@pytest.mark.parametrize("name", of_head("classifier"))
def test_classify_gives_the_recorded_logits(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, texts = opened(tmp_path, case), Texts(case, case.segments)
    records = model.classify(texts.texts, texts.pairs, activation="none")
    scores = [{one["label"]: one["score"] for one in record["labels"]} for record in records]
    close([[said[label] for label in model.config.labels] for said in scores], recorded(name, "classifier"))


@pytest.mark.parametrize("name", of_head("token_classifier"))
def test_tag_gives_the_likeliest_label_of_every_token(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, texts = opened(tmp_path, case), Texts(case, paired=False)
    found = [
        entity for record in model.tag(texts.texts, aggregation="none", ignore=()) for entity in record["entities"]
    ]
    if case.segments:  # which tag's single texts do not have
        texts.segments = [[0] * len(ids) for ids in texts.ids]
        expected = np.concatenate(texts.of_network(model, "token_classifier"))
    else:
        expected, found = recorded(name, "token_classifier"), [found[row] for row in texts.rows]
    assert [entity["entity"] for entity in found] == [model.config.labels[best] for best in expected.argmax(axis=1)]
    close([entity["score"] for entity in found], probabilities(expected).max(axis=1))


@pytest.mark.parametrize("name", of_head("qa"))
def test_answer_scores_spans_by_the_recorded_logits(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, texts = opened(tmp_path, case), Texts(case, paired=True)
    logits = texts.of_network(model, "qa")
    close(np.concatenate(logits)[texts.rows], recorded(name, "qa"))
    every = model.answer(texts.texts, texts.pairs, score="logits", top_k=100, max_answer_length=100)
    for record, question, (start, end) in zip(every, texts.texts, (rows.T for rows in logits), strict=True):
        before = len(question.split())
        assert record["answers"]
        for one in record["answers"]:  # the first token stands for no answer
            first = before + len(record["context"][: one["start"]].split())
            last = before + len(record["context"][: one["end"]].split()) - 1
            close(one["score"], start[first] + end[last] - start[0] - end[0])


@pytest.mark.parametrize("name", of_head("mlm"))
def test_fill_mask_and_score_give_the_recorded_logits(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, texts = opened(tmp_path, case), Texts(case, case.segments)
    columns = range(model.config.vocab_size)[COLUMNS]
    pairs = None if texts.pairs is None else texts.pairs[:1]
    (record,) = model.fill_mask(texts.texts[:1], targets=[f"w{id}" for id in columns], pairs=pairs)
    mask = next(mask for mask in record["masks"] if mask["position"] == 0)
    said = {one["token"]: np.log(one["score"]) for one in mask["predictions"]}
    logits = recorded(name, "mlm")[0]
    close([said[id] - said[columns[0]] for id in columns], logits - logits[0])

    mask, *ids = texts.ids[0][:12]  # each is predicted with itself masked
    (scored,) = model.score([words(ids)])
    assert len(scored["tokens"]) == len(ids)
    for at, token in enumerate(scored["tokens"]):
        masked = [*ids[:at], mask, *ids[at + 1 :]]
        close(np.exp(token["log_prob"]), probabilities(model.outputs([masked])["mlm"])[0, at, ids[at]])


@pytest.mark.parametrize("name", of_head("multiple_choice"))
def test_classify_chooses_by_the_networks_logits(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, texts = opened(tmp_path, case), Texts(case, paired=True)
    close(texts.of_network(model, "multiple_choice"), recorded(name, "multiple_choice"))
    query, choices = texts.texts[0], texts.pairs
    assert choices is not None
    (record,) = model.classify([query], choices=choices)
    said = {one["label"]: one["score"] for one in record["labels"]}
    logits = texts.of_network(model, "multiple_choice", query)
    close([said[choice] for choice in choices], probabilities(np.ravel(logits)))


@pytest.mark.parametrize("name", of_head("model"))
def test_encode_pools_the_recorded_states(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, texts = opened(tmp_path, case), Texts(case, case.segments)
    for layer, expected in zip((-1, -2), recorded(name, "states")[::-1], strict=False):
        blocks = model.encode_blocks(texts.texts, texts.pairs, pooling="none", layer=layer)
        states = np.concatenate([vectors for block in blocks for vectors in block.vectors])
        grown = 1 if layer == -1 else max(1, np.abs(expected).max() / 4)  # sums between layers that norm their input
        assert_near(states[texts.rows], expected, 1e-5 * grown)
        poolings: dict[Pooling, Any] = {"mean": np.mean, "max": np.max, "cls": lambda x, axis: x[0]}
        for pooling, pooled in poolings.items():
            whole = np.split(states, texts.offsets[1:-1])
            vectors = model.encode(texts.texts, texts.pairs, pooling=pooling, layer=layer)
            close(vectors, [pooled(x, axis=0) for x in whole])
    if "pooler" in model.heads:
        close(model.encode(texts.texts, texts.pairs, pooling="pooler"), recorded(name, "pooler"))


RANKING = [family for family, of in FAMILIES.items() if "classifier" in of.heads]
ONE_OUTPUT = {f"{family}.cls": Case(family, "classifier", {"sizes": {"C": 1}}) for family in RANKING} | {
    "modernbert.mean": Case("modernbert", "classifier", {"sizes": {"C": 1}, "config": {"classifier_pooling": "mean"}})
}


@pytest.mark.parametrize("name", ONE_OUTPUT)
def test_rank_orders_by_the_networks_logit(name: str, tmp_path: Path) -> None:
    model, texts = opened(tmp_path, ONE_OUTPUT[name]), Texts(ONE_OUTPUT[name], paired=True)
    records = model.rank(texts.texts[0], texts.pairs or [])
    scores = 1 / (1 + np.exp(-np.ravel(texts.of_network(model, "classifier", texts.texts[0])).astype(np.float64)))
    assert [record["corpus_id"] for record in records] == np.argsort(-scores).tolist()
    close([record["score"] for record in records], np.sort(scores)[::-1])
