"""config.json in, a checked configuration or one clear line out."""

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bertcli
from bertcli.errors import BertcliError, quoted
from bertcli.models.bert import BertConfig
from bertcli.models.registry import families, family, parse_config, parse_heads, variants

BERT = family("bert")
OLD = {"vocab_size": 100, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def test_an_old_config_gets_berts_defaults() -> None:
    config = parse_config(OLD)
    assert isinstance(config, BertConfig)
    assert config.layer_norm_eps == 1e-12
    assert config.hidden_act == "gelu"
    assert config.pad_token_id == 0
    assert config.max_position_embeddings == 512
    assert config.tie_word_embeddings
    assert config.sizes["D"] == 4


def test_labels_are_in_the_order_of_their_numbers() -> None:
    """transformers writes the numbers in the order of texts, 10 before 2."""
    assert parse_config({**OLD, "id2label": {"1": "yes", "0": "no", "2": "maybe"}}).labels == ["no", "yes", "maybe"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "does not run models of type 'gpt2'; it runs bert, albert"),
        ({"architectures": ["GPT2LMHeadModel"]}, "does not run models of type 'GPT2LMHeadModel'"),
        ({"hidden_act": "mish"}, "hidden_act is 'mish'; bertcli runs BERT with gelu"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is true"),
        (
            {"num_attention_heads": 3},
            "cannot be split over num_attention_heads 3; possible numbers are, for example, 1, 2, 4",
        ),
        ({"hidden_size": None}, "hidden_size is missing: this is not the config.json of BERT"),
        ({"hidden_size": None, "vocab_size": None}, "vocab_size, hidden_size are missing"),
        ({"hidden_size": "8"}, "not a whole number"),
        ({"hidden_size": True}, "hidden_size is true, which is not a whole number"),
        ({"hidden_size": 0}, "at least 1"),
        ({"num_hidden_layers": -1}, "at least 1"),
        ({"vocab_size": 10**20}, "at most 16777216"),
        ({"layer_norm_eps": 0}, "layer_norm_eps is 0; it must be at least"),
        ({"id2label": {"0": "a", "2": "b"}}, "id2label"),
        ({"id2label": ["a"]}, "id2label"),
        ({"architectures": "BertModel"}, "architectures is"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BertcliError, match=message):
        parse_config({**OLD, **change})


def test_what_is_wrong_is_named_by_the_family_s_own_keys() -> None:
    with pytest.raises(BertcliError, match="dim is -5; it must be"):
        parse_config(
            {
                "model_type": "distilbert",
                **dict.fromkeys(("vocab_size", "n_layers", "n_heads", "hidden_dim"), 4),
                "dim": -5,
            }
        )
    with pytest.raises(BertcliError, match="norm_eps is 0; it must be"):
        parse_config({**OLD, "model_type": "modernbert", "norm_eps": 0})
    with pytest.raises(BertcliError, match="hidden_activation is 'mish'"):
        parse_config({**OLD, "model_type": "modernbert", "hidden_activation": "mish"})


@pytest.mark.parametrize("value", ["768", 7.5, float("nan"), True, [768]])
def test_what_is_wrong_is_named_in_python_too(value: Any) -> None:
    with pytest.raises(BertcliError, match=r"hidden_size is .*, which is not a whole number"):
        BertConfig(hidden_size=value)
    with pytest.raises(BertcliError, match="layer_norm_eps is"):
        BertConfig(layer_norm_eps=float("nan"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


every_key = sorted(
    {one.name for found in families() for one in fields(found.config)} | {"rope_parameters", "rope_scaling"}
)
WHOLE = {**OLD, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "relative_attention": True}


@given(
    st.sampled_from(sorted(one for found in families() for one in found.types if found.names)),
    st.dictionaries(st.sampled_from(sorted(every_key)), st.integers(-2, 9) | json_values),
)
def test_no_config_of_any_family_crashes(model_type: str, change: dict[str, Any]) -> None:
    try:
        config = parse_config(json.loads(json.dumps({**WHOLE, **change, "model_type": model_type})))
    except BertcliError:
        return
    assert config.max_tokens >= 1
    assert bertcli.params(bertcli.variant(config=config), collapse=True).total_params > 0


@given(json_values)
def test_an_odd_value_is_shown_in_one_short_line(value: Any) -> None:
    assert len(quoted(value)) <= 120
    assert quoted(value).isprintable()


def test_heads_bring_what_they_need() -> None:
    assert parse_heads("none", BERT) == ()
    assert parse_heads("mlm", BERT) == ("mlm",)
    assert parse_heads("nsp", BERT) == ("pooler", "nsp")
    assert parse_heads(["classifier", "mlm"], BERT) == ("pooler", "mlm", "classifier")
    with pytest.raises(BertcliError, match="no head 'lm'; choose from pooler, mlm, nsp, classifier"):
        parse_heads("mlm,lm", BERT)


def test_an_unknown_variant_says_which_there_are() -> None:
    with pytest.raises(BertcliError, match=r"no variant 'huge'\. Choose from tiny, mini, small, medium, base, large"):
        bertcli.variant("huge")
    for name, near in (("bert-base", "base"), ("largo", "large"), ("robertabase", "roberta-base")):
        with pytest.raises(BertcliError, match=rf"no variant '{name}'\. Did you mean {near}[ ?]"):
            bertcli.variant(name)
    configs = {name: member.variant(name) for name, member in variants().items()}
    heads = {name: config.hidden_size // config.num_attention_heads for name, config in configs.items()}
    assert {name: size for name, size in heads.items() if size != 64} == {
        "albert-xlarge": 128, "esm2-8m": 16, "esm2-35m": 24, "esm2-150m": 32, "esm2-15b": 128, "eurobert-2.1b": 128,
        "embeddinggemma-300m": 256, "gte-qwen2-1.5b": 128, "mt5-small": 85, "umt5-small": 85,
    }  # fmt: skip


def test_the_width_of_a_static_model_is_called_hidden_dim() -> None:
    config = parse_config({"model_type": "model2vec", "vocab_size": 100, "hidden_dim": 300})
    assert config.hidden_size == 300
    assert bertcli.params(bertcli.variant(config=config)).total_params == 30_000


def test_what_a_static_model_lacks_is_said_in_whole_sentences() -> None:
    with pytest.raises(BertcliError, match=r"vocab_size is missing: this is not the config.json of a static model\."):
        parse_config({"model_type": "model2vec"})
    with pytest.raises(BertcliError, match="There is no head 'mlm': a static model has none, so leave out the heads"):
        parse_heads("mlm", family("model2vec"))
