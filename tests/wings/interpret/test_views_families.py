"""explain, lens, heads and diff on every family, each with its own kind of tokenizer: they know none of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.tokenizer_kinds import KINDS, write_kind
from helpers.vocabulary import pieces, write_tokenizer_json

import bertcli
from bertcli.analysis.texts import tokens_of
from bertcli.engine.packing import pack
from bertcli.model import Model
from bertcli.network.module import parameters
from bertcli.tracing.dispatch import Array, watching
from bertcli.wings.interpret.compute.diff import Diff
from bertcli.wings.interpret.compute.heads import silencing
from bertcli.wings.interpret.compute.part_watcher import HEADS, PartWatcher
from bertcli.wings.interpret.compute.target import TokenizedText, result_of, sentence_of
from bertcli.wings.interpret.options import TargetOptions

TEXT = "the good king drank hot tea and a dog sat"


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(folder: Path, family: str, head: str) -> Model:
    """A checkpoint of a family with a tokenizer of its kind."""
    folder.mkdir(exist_ok=True)
    if family in KINDS:
        size = write_kind(folder, family)
    else:
        write_tokenizer_json(folder, pieces())
        size = len(pieces())
    return bertcli.load(make_family(folder, family, head, sizes={"V": size}, seed=5))


@pytest.fixture(scope="module")
def labels(family: str, tmp_path_factory: pytest.TempPathFactory) -> Model:
    if "classifier" not in FAMILIES[family].heads:
        pytest.skip("has no labels for texts")
    return opened(tmp_path_factory.mktemp("labels"), family, "classifier")


@pytest.fixture(scope="module")
def masks(family: str, tmp_path_factory: pytest.TempPathFactory) -> Model:
    if "mlm" not in FAMILIES[family].heads:
        pytest.skip("fills no masks")
    return opened(tmp_path_factory.mktemp("masks"), family, "mlm")


def test_views_of_families_explain_words_as_passes_one_by_one(labels: Model) -> None:
    found = bertcli.explain(labels, TEXT)
    assert [word.word for word in found.words] == TEXT.split()
    tokens = tokens_of(labels, TEXT)
    sentence = sentence_of(labels, tokens, TEXT, TargetOptions())
    result = result_of(labels, sentence, TargetOptions())
    for word in found.words:
        places = [i for i, (a, b) in enumerate(tokens.offsets) if a < word.end and b > word.start]
        ids = [labels.tokenizer.mask_id if i in places else id for i, id in enumerate(tokens.ids)]
        alone = float(result.of([TokenizedText(ids, sentence.segments)])[0])
        assert found.value - alone == pytest.approx(word.contribution, abs=1e-5)
        assert abs(word.contribution) > 1e-7


def test_views_of_families_lens_ends_with_the_answer(masks: Model) -> None:
    text = f"the king drank hot {masks.tokenizer.mask_token}"
    (mask,) = bertcli.lens(masks, text).masks
    best = masks.fill_mask([text], top_k=3)[0]["masks"][0]["predictions"]
    predictions = [(one.token, one.token_str) for one in mask.layers[-1].predictions]
    assert predictions == [(one["token"], one["token_str"]) for one in best]
    assert mask.layers[-1].score == pytest.approx(best[0]["score"], abs=1e-6)
    assert len(mask.layers) == masks.config.num_hidden_layers + 1
    assert mask.layers[0].kl > 0


def test_views_of_families_lens_sees_a_layer_as_if_it_were_the_last(masks: Model) -> None:
    """A network without its last layer answers what the lens says of the layer before."""
    text = f"the king drank hot {masks.tokenizer.mask_token}"
    (mask,) = bertcli.lens(masks, text).masks
    *_, before, _ = mask.layers
    fewer = replace(masks.config, num_hidden_layers=before.layer)
    weights = {one.path: one.array for one in parameters(masks.network)}
    kept = {one.path for one in parameters(bertcli.variant(config=fewer, heads="mlm").network)}
    shorter = bertcli.variant(
        config=fewer, heads="mlm", weights={path: weights[path] for path in weights if path in kept}
    )
    logits = shorter.outputs([tokens_of(masks, text).ids])["mlm"]
    assert logits is not None
    values = np.asarray(logits[0, mask.position], np.float64)
    shares = np.exp(values - np.logaddexp.reduce(values))
    assert [one.score for one in before.predictions] == pytest.approx(np.sort(shares)[::-1][:3].tolist(), rel=1e-4)


def test_views_of_families_heads_are_silenced_from_their_layer_on(labels: Model) -> None:
    found = bertcli.heads(labels, TEXT, ablate=True)
    assert len(found.heads) == labels.config.num_hidden_layers * labels.config.num_attention_heads
    assert all(0 < row.entropy <= np.log(len(tokens_of(labels, TEXT).ids)) for row in found.heads)
    tokens = tokens_of(labels, TEXT)
    sentence = sentence_of(labels, tokens, TEXT, TargetOptions())
    result = result_of(labels, sentence, TargetOptions())
    states = list(labels.network.states(pack([tokens])))
    for row in found.heads:
        layer, head = row.layer - 1, row.head - 1  # people count from 1

        def silence(kind: str, number: int, array: Array, at: tuple[int, int] = (layer, head)) -> None:
            if kind == HEADS and number == at[0]:
                array[:, at[1]] = 0

        with watching(PartWatcher(labels.network, silence)):
            whole = float(result.of([sentence])[0])
        assert whole - float(result.of([sentence])[0]) == pytest.approx(row.change, abs=1e-5)
        with watching(PartWatcher(labels.network, silencing(layer, [head]), layer, states[layer])):
            assert float(result.of([sentence])[0]) == pytest.approx(whole, abs=1e-5)


def test_views_of_families_diff_finds_a_fault(family: str, masks: Model, tmp_path: Path) -> None:
    same = bertcli.diff(masks, opened(tmp_path / "same", family, "mlm"), TEXT)
    assert isinstance(same, Diff)
    assert (same.first, same.weights) == (None, ())
    with bertcli.trace(masks, keep=lambda path: True) as trace:
        masks.outputs([tokens_of(masks, TEXT).ids])
    assert [step.path for step in same.steps] == [step.path for step in trace.steps]
    states = {
        f"hidden_states.{i}": state[None]
        for i, state in enumerate(masks.network.states(pack([tokens_of(masks, TEXT)])))
    }
    found = bertcli.diff(masks, states, TEXT)
    assert isinstance(found, Diff)
    assert (len(found.steps), found.first) == (len(states), None)
