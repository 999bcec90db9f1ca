"""rank against sentence-transformers' CrossEncoder (tests/reference/tasks.json), and what it refuses."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.checkpoints import make
from helpers.json_files import change_json, write_json
from helpers.pipelines import SAID, same
from hypothesis import given
from hypothesis import strategies as st
from reference import task_cases as cases

import bertcli
from bertcli.errors import BertcliError
from bertcli.files.texts import Text, Texts, from_values
from bertcli.model import Model
from bertcli.tasks.compute.rank import ByQuery, plan, with_query
from bertcli.tasks.rank import RankOptions
from bertcli.tasks.running.run import results


@pytest.fixture(scope="module")
def ranker(made: Made) -> Model:
    return bertcli.load(made(**cases.RANKER))


@pytest.mark.parametrize("name", cases.ACTIVATIONS)
def test_rank_equals_cross_encoder(name: str, tmp_path: Path) -> None:
    path = cases.write_ranker(tmp_path, name)
    records = bertcli.load(path).rank(cases.QUERY, cases.DOCUMENTS, truncation="silent")
    expected = SAID[f"rank.{name}"]
    same(records, [{"query": cases.QUERY, **one, "text": cases.DOCUMENTS[one["corpus_id"]]} for one in expected])
    assert list(records[0]) == ["query", "corpus_id", "score", "text"]


def test_rank_puts_a_cross_encoders_prompt_before_the_query(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = make(tmp_path, **cases.RANKER)
    plain = bertcli.load(path)
    prefixed = plain.rank("hot " + cases.QUERY, cases.DOCUMENTS, truncation="silent")
    labels = plain.classify(["hot tea"], ["the river"])
    explained = bertcli.explain(plain, ["hot tea"], pairs=["the river"])[0]
    settings = {"model_type": "CrossEncoder", "prompts": {"query": "hot "}, "default_prompt_name": "query"}
    write_json(path / "config_sentence_transformers.json", settings)
    model = bertcli.load(path)
    with caplog.at_level("INFO", "bertcli"):
        records = model.rank(cases.QUERY, cases.DOCUMENTS, truncation="silent")
    assert records == [record | {"query": cases.QUERY} for record in prefixed]
    assert "'hot ' is prepended to every first text" in caplog.text
    assert model.classify(["tea"], ["the river"])[0]["labels"] == labels[0]["labels"]
    assert bertcli.explain(model, ["tea"], pairs=["the river"])[0].value == explained.value


def test_rank_of_pairs_ranks_each_querys_documents(ranker: Model) -> None:
    queries = ["tea"] * 4 + ["river"] * 2
    together = ranker.rank(queries, cases.DOCUMENTS, truncation="silent", batch_tokens=8)
    tea = ranker.rank("tea", cases.DOCUMENTS[:4], truncation="silent")
    river = ranker.rank("river", cases.DOCUMENTS[4:], truncation="silent")
    expected = [*tea, *({**record, "corpus_id": record["corpus_id"] + 4} for record in river)]
    same(together, expected)


def test_rank_gives_the_best_of_each_query(ranker: Model) -> None:
    queries = ["tea"] * 4 + ["river"] * 2
    every = ranker.rank(queries, cases.DOCUMENTS, truncation="silent")
    best = ranker.rank(queries, cases.DOCUMENTS, top_k=1, truncation="silent")
    assert best == [every[0], every[4]]


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=30)


@pytest.mark.any_kernel
@given(rows, st.integers(1, 30), st.integers(1, 4))
def test_rank_windows_end_where_a_query_does_or_hold_one_query(
    drawn: list[tuple[int, int]], tokens: int, span: int
) -> None:
    pairs = [Text(f"q{query}", "x" * length) for query, length in sorted(drawn)]
    windows = list(ByQuery(Texts(pairs)).grouped(tokens, span))
    assert [text for window in windows for text in window] == pairs
    for window, following in pairwise(windows):
        goes_on = following[0].text == window[-1].text
        assert not goes_on or len({text.text for text in window}) == 1


@pytest.mark.any_kernel
def test_rank_resumes_where_an_earlier_run_stopped(ranker: Model) -> None:
    queries = [query for query in ("tea", "river", "sun") for _ in range(5)]
    documents = [f"word {i}" for i in range(15)]
    task = plan(ranker, RankOptions(batch_tokens=8))
    blocks = list(results(task, from_values(queries, documents)))
    assert len(blocks) > 1
    for done in range(len(blocks)):
        earlier = [record for block in blocks[: done + 1] for record in block.records()]
        start = blocks[done].progress
        later = [
            record for block in results(task, from_values(queries, documents), start) for record in block.records()
        ]
        assert earlier + later == [record for block in blocks for record in block.records()]


def test_rank_keeps_going_past_rows_that_cannot_be_used(ranker: Model) -> None:
    pairs = [Text("tea", "hot"), Text("", location="p:2", error="p:2: bad."), Text("tea", "cold"), Text("sun", "red")]
    task = plan(ranker, RankOptions(keep_going=True))
    records = [record for block in results(task, Texts(pairs)) for record in block.records()]
    assert [record["query"] for record in records] == ["tea", "tea", "tea", "sun"]
    assert records[2] == {"query": "tea", "corpus_id": 1, "text": None, "error": "p:2: bad."}
    (failed,) = [record for block in results(task, with_query("tea", Texts(pairs[1:2]))) for record in block.records()]
    assert failed == {**records[2], "corpus_id": 0}


def test_rank_refuses_a_query_in_two_places(ranker: Model) -> None:
    with pytest.raises(BertcliError, match=r"the query 'tea' comes again after another one.*sort the rows"):
        ranker.rank(["tea", "sun", "tea"], ["a", "b", "c"])


@pytest.mark.any_kernel
def test_rank_refuses(ranker: Model, made: Made) -> None:
    two = bertcli.load(made(head="classifier", num_labels=2))
    with pytest.raises(BertcliError, match=r"needs a classifier with one output, and .* has 2 labels: classify"):
        two.rank("tea", ["hot"])
    with pytest.raises(BertcliError, match="-m cross-encoder/ms-marco-MiniLM-L6-v2"):
        bertcli.load().rank("tea", ["hot"])
    with pytest.raises(BertcliError, match="There are fewer pairs than texts"):
        ranker.rank(["tea", "sun"], ["a"])
    with pytest.raises(BertcliError, match="has a query, but no document to rank"):
        list(results(plan(ranker, RankOptions()), Texts([Text("tea")])))


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    "path", ["os.system", "torch.nn.ReLU", "evil.Sigmoid", "torch.Tanh", "torchvision.nn.Tanh", "torch.nnx.Tanh", 3]
)
def test_rank_refuses_activations_that_are_not_allowed(path: Any, tmp_path: Path) -> None:
    model = bertcli.load(make(tmp_path, **cases.RANKER, config={"sbert_ce_default_activation_function": path}))
    with pytest.raises(BertcliError, match=r"asks for the activation .* supports torch's Identity, Sigmoid, Tanh"):
        model.rank("tea", ["hot"])


def test_rank_takes_the_sigmoid_where_both_keys_of_the_activation_are_null(tmp_path: Path) -> None:
    folder = make(tmp_path, **cases.RANKER)
    scores = [record["score"] for record in bertcli.load(folder).rank("tea", ["hot", "the king"])]
    keys = ("sbert_ce_default_activation_function", "sentence_transformers")
    change_json(folder / "config.json", dict.fromkeys(keys))
    assert [record["score"] for record in bertcli.load(folder).rank("tea", ["hot", "the king"])] == scores


def test_rank_keeps_equal_documents_in_the_order_given(ranker: Model) -> None:
    documents = [*cases.DOCUMENTS[:2], "tea", *cases.DOCUMENTS[2:]] * 9  # in windows and batches that differ
    for batch_tokens in (1, 40, None):
        records = ranker.rank(cases.QUERY, documents, truncation="silent", batch_tokens=batch_tokens)
        places: dict[str, list[int]] = {}
        for record in records:
            places.setdefault(record["text"], []).append(record["corpus_id"])
        assert list(places.values()) == [sorted(ids) for ids in places.values()]
        together = [record["text"] for record in records]
        assert len(places) == 6
        assert [text for i, text in enumerate(together) if together[i - 1 : i] != [text]] == list(places)
