"""Settings that the references heed are heeded here, or refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoints import Sentence, make
from helpers.family_checkpoints import make_family
from helpers.json_files import change_json, read_json, write_json
from helpers.near import assert_near
from helpers.opened_folders import tokenizer_of
from helpers.recorded import recorded
from helpers.tokenizer_kinds import write_kind
from reference import setting_cases as cases

import bertcli
from bertcli.errors import BertcliError

RECORDED = recorded("settings.json")


@pytest.mark.parametrize("case", [*cases.SENTENCE_CASES, cases.NO_MODULES])
def test_settings_of_a_sentence_model(tmp_path: Path, case: str) -> None:
    model = bertcli.load(cases.write_sentence_case(tmp_path / "m", case))
    found = model.encode(list(cases.TEXTS), truncation="silent")
    assert_near(found, RECORDED["sentence"][case], 2e-6)


def test_settings_of_a_sentence_model_matter() -> None:
    """Else the recorded numbers would show nothing."""
    plain = RECORDED["sentence"]["no limit"]
    same = {name for name, vectors in RECORDED["sentence"].items() if np.allclose(vectors, plain, rtol=0, atol=1e-4)}
    neutral = {"no limit", "no segments", "filled on the left", "the usual output"}
    assert same == {*neutral, cases.NO_MODULES}


@pytest.mark.any_kernel
@pytest.mark.parametrize("case", cases.TOKENIZER_CASES)
def test_settings_of_a_tokenizer(tmp_path: Path, case: str) -> None:
    tokenizer = tokenizer_of(cases.write_tokenizer_case(tmp_path / "m", case))
    found = [tokens.ids for tokens in tokenizer.encode(cases.SPECIAL_TEXTS, None, tokenizer.model_max_length)]
    assert [*found, tokenizer.encode([cases.SPECIAL_TEXTS[2]], None, 7)[0].ids] == RECORDED["tokenizer"][case]


@pytest.mark.parametrize("case", cases.NETWORK_CASES)
def test_settings_of_a_network(tmp_path: Path, case: str) -> None:
    model = bertcli.load(cases.write_network_case(tmp_path / "m", case))
    segments = [cases.SEGMENTS] if "segments" in case else None
    found = model.forward([cases.IDS], segments)[0]
    assert_near(found, RECORDED["network"][case], 1e-5)


def test_rope_theta_of_modernberts_local_layers_is_the_others_if_it_is_null(tmp_path: Path) -> None:
    folder = make_family(tmp_path / "m", "modernbert", config={"global_rope_theta": 500.0})
    config = read_json(folder / "config.json")
    states = {}
    for theta in (None, 500.0, 10000.0):
        write_json(folder / "config.json", config | {"local_rope_theta": theta})
        states[theta] = bertcli.load(folder).forward([cases.IDS])
    np.testing.assert_array_equal(states[None], states[500.0])
    assert np.abs(states[None] - states[10000.0]).max() > 1e-3


@pytest.mark.parametrize(("family", "feed_forward"), [("t5", "relu"), ("mt5", "gated-gelu"), ("umt5", "gated-gelu")])
def test_feed_forward_layers_of_t5_are_those_of_the_type_if_nothing_is_said(
    tmp_path: Path, family: str, feed_forward: str
) -> None:
    """As the configurations of transformers have it: T5Config, MT5Config and UMT5Config differ."""
    folder = make_family(tmp_path / family, family, config={"feed_forward_proj": feed_forward})
    said = bertcli.load(folder).forward([cases.IDS])
    config = read_json(folder / "config.json")
    del config["feed_forward_proj"]
    write_json(folder / "config.json", config)
    np.testing.assert_array_equal(bertcli.load(folder).forward([cases.IDS]), said)


@pytest.mark.parametrize(
    ("family", "config", "named"),
    [
        ("modernbert", {"local_attention": 8, "sliding_window": 2}, "sliding_window is 2, and local_attention 8"),
        ("distilbert", {"hidden_size": 16}, "dim is 32, and hidden_size, which is the same setting, 16"),
        ("distilbert", {"num_attention_heads": 4}, "n_heads is 2, and num_attention_heads"),
    ],
)
def test_settings_of_a_network_that_disagree(tmp_path: Path, family: str, config: dict[str, Any], named: str) -> None:
    with pytest.raises(BertcliError, match=named):
        bertcli.load(make_family(tmp_path / "m", family, config=config))


def test_settings_give_segments_to_pairs(tmp_path: Path) -> None:
    """RoBERTa's tokenizers give none unless model_input_names has them; a BERT tokenizer gives them."""
    for inputs, segments in ((None, [0] * 5), (["input_ids", "token_type_ids"], [0, 0, 0, 1, 1])):
        folder = tmp_path / str(len(segments)) / str(bool(inputs))
        folder.mkdir(parents=True)
        size = write_kind(folder, "modernbert", model_input_names=inputs, tokenizer_class="RobertaTokenizer")
        make_family(folder, "roberta", sizes={"V": size, "T": 2}, config={"type_vocab_size": 2})
        model = bertcli.load(folder)
        assert model.tokenizer.encode(["tea"], ["hot"])[0].segments[-2:] == segments[-2:]


POOLED = {"text": {"method": "forward", "method_output_name": "pooler_output"}}


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"config_args": {"hidden_act": "relu"}}, "config_args {'hidden_act': 'relu'}, which bertcli does not apply"),
        ({"config_kwargs": {"use_cache": True}}, "the config_kwargs {'use_cache': true}, which"),
        (
            {"tokenizer_args": {"mask_token": "tea"}},
            "the tokenizer_args {'mask_token': 'tea'}; bertcli applies add_pre",
        ),
        ({"processor_kwargs": {"max_len": 7}}, "the processor_kwargs {'max_len': 7}; bertcli applies"),
        ({"model_args": {"variant": "fp16", "dtype": "auto"}}, "the model_args {.*}, which bertcli does not apply"),
        ({"tokenizer_args": {}, "processor_kwargs": {"use_fast": True}}, "processor_kwargs"),
        ({"model_args": 3}, "the model_args 3"),
        (
            {"processing_kwargs": {"chat_template": 1e-12}},
            "processing_kwargs .*; chat_template in it must be an object",
        ),
        ({"processing_kwargs": {"text": "rr"}}, "processing_kwargs .*; text in it must be an object"),
        ({"processing_kwargs": "rr"}, "the processing_kwargs 'rr'"),
        ({"processing_kwargs": {"text": {"add_special_tokens": False}}}, "; of these bertcli applies max_length"),
        ({"processing_kwargs": {"common": {"truncation": False}}}, "; of these bertcli applies max_length"),
        ({"tokenizer_args": {"do_lower_case": "no"}}, "do_lower_case 'no'"),
        ({"tokenizer_name_or_path": "bert-base-cased"}, "the tokenizer_name_or_path 'bert-base-cased'"),
        ({"transformer_task": "text-generation"}, "the transformer_task 'text-generation'"),
        ({"transformer_task": "fill-mask"}, "the transformer_task 'fill-mask'"),
        ({"modality_config": POOLED, "module_output_name": "token_embeddings"}, "modality_config"),
        ({"module_output_name": "sentence_embedding"}, "the module_output_name 'sentence_embedding'"),
    ],
)
def test_settings_of_a_sentence_model_refused(tmp_path: Path, settings: dict[str, Any], named: str) -> None:
    folder = make(tmp_path / "m", sentence=Sentence(("mean",)))
    write_json(folder / "sentence_bert_config.json", settings)
    with pytest.raises(BertcliError, match=named):
        bertcli.load(folder).encode(["tea"])


def test_settings_texts_are_in_lower_case_before_they_are_normalized(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", tokenizer="json", sentence=Sentence(("mean",)))
    file, replaced = folder / "tokenizer.json", {"type": "Replace", "pattern": {"String": "T"}, "content": "x"}
    change_json(file, {"normalizer": replaced})
    for lower, pieces in ((True, ["tea"]), (False, ["x", "##e", "##a"])):
        write_json(folder / "sentence_bert_config.json", {"do_lower_case": lower})
        assert bertcli.load(folder).tokenizer.encode(["Tea"])[0].pieces[1:-1] == pieces


def test_settings_without_padding_a_classifier_reads_the_last_token(tmp_path: Path) -> None:
    """As transformers does (compared with 5.23); by default Gemma's padding is token 0."""
    folder, logits = make_family(tmp_path / "m", "gemma3_text", "classifier"), dict[int | None, Any]()
    config = read_json(folder / "config.json")
    for padding in (0, 9, None):
        write_json(folder / "config.json", config | {"pad_token_id": padding})
        logits[padding] = bertcli.load(folder).outputs([[5, 6, 7, 0]])["classifier"]
    np.testing.assert_array_equal(logits[None], logits[9])
    assert np.abs(logits[9] - logits[0]).max() > 1e-3
