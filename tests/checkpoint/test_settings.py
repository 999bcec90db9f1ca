"""Settings that the references heed are heeded here, or refused by name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoints import Sentence, make
from reference import setting_cases as cases

import bertcli
from bertcli.checkpoint.folder import Folder
from bertcli.errors import BertcliError
from bertcli.tokens import Tokenizer

RECORDED = json.loads((Path(__file__).parents[1] / "reference" / "settings.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", [*cases.SENTENCE_CASES, cases.NO_MODULES])
def test_settings_of_a_sentence_model(tmp_path: Path, case: str) -> None:
    model = bertcli.load(cases.write_sentence_case(tmp_path / "m", case))
    found = model.encode(list(cases.TEXTS), truncation="silent")
    np.testing.assert_allclose(found, RECORDED["sentence"][case], rtol=0, atol=2e-6)


def test_settings_of_a_sentence_model_matter() -> None:
    """Else the recorded numbers would show nothing."""
    plain = RECORDED["sentence"]["no limit"]
    same = {name for name, vectors in RECORDED["sentence"].items() if np.allclose(vectors, plain, rtol=0, atol=1e-4)}
    neutral = {"no limit", "no segments", "filled on the left", "arguments without effect", "the usual output"}
    assert same == {*neutral, cases.NO_MODULES}


@pytest.mark.parametrize("case", cases.TOKENIZER_CASES)
def test_settings_of_a_tokenizer(tmp_path: Path, case: str) -> None:
    tokenizer = Tokenizer.open(Folder(cases.write_tokenizer_case(tmp_path / "m", case)))
    found = [tokens.ids for tokens in tokenizer.encode(cases.SPECIAL_TEXTS, None, tokenizer.model_max_length)]
    assert [*found, tokenizer.encode([cases.SPECIAL_TEXTS[2]], None, 7)[0].ids] == RECORDED["tokenizer"][case]


POOLED = {"text": {"method": "forward", "method_output_name": "pooler_output"}}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"config_args": {"hidden_act": "relu"}}, "config_args with 'hidden_act'"),
        ({"config_kwargs": {"num_hidden_layers": 1, "use_cache": True}}, "config_args with 'num_hidden_layers'"),
        ({"tokenizer_args": {"mask_token": "tea"}}, "tokenizer_args with 'mask_token'"),
        ({"processor_kwargs": {"max_len": 7}}, "tokenizer_args with 'max_len'"),
        ({"model_args": {"variant": "fp16", "dtype": "auto"}}, "model_args with 'variant'"),
        ({"tokenizer_args": {}, "processor_kwargs": {"use_fast": True}}, "not the same object"),
        ({"model_args": 3}, "not the same object: \\[3\\]"),
        ({"tokenizer_args": {"do_lower_case": "no"}}, "do_lower_case 'no'"),
        ({"tokenizer_name_or_path": "bert-base-cased"}, "the tokenizer of 'bert-base-cased'"),
        ({"transformer_task": "text-generation"}, "the transformer_task 'text-generation'"),
        ({"transformer_task": "fill-mask"}, "the transformer_task 'fill-mask'"),
        ({"modality_config": POOLED, "module_output_name": "token_embeddings"}, "modality_config"),
        ({"module_output_name": "sentence_embedding"}, "the module_output_name 'sentence_embedding'"),
    ],
)
def test_settings_of_a_sentence_model_refused(tmp_path: Path, settings: dict[str, Any], named: str) -> None:
    folder = make(tmp_path / "m", sentence=Sentence(("mean",)))
    (folder / "sentence_bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(BertcliError, match=named):
        bertcli.load(folder).encode(["tea"])
