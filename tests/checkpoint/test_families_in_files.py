"""Which family a folder is of, what its config.json must say, and what is refused with which words."""

from pathlib import Path
from typing import Any

import pytest
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.json_files import read_json, write_json
from helpers.terminal import bertcli as command

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.models.gte import GteConfig
from bertcli.models.registry import family, parse_config, variants
from bertcli.weights.tensors import open_tensors

OLD = {"vocab_size": 100, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
MODERN = {"model_type": "modernbert", **OLD}
DEBERTA = {"model_type": "deberta-v2", **OLD, "relative_attention": True, "pos_att_type": "p2c|c2p"}
ALBERT = {"model_type": "albert", **OLD}
NOMIC = {"model_type": "nomic_bert", **OLD}
GTE = {"model_type": "gte", **OLD}
EUROBERT = {"model_type": "eurobert", **OLD}
GEMMA = {"model_type": "gemma3_text", **OLD, "num_key_value_heads": 1, "use_bidirectional_attention": True}
MPNET = {"model_type": "mpnet", **OLD}
T5 = {"model_type": "t5", "vocab_size": 9, "d_model": 8, "num_layers": 1, "num_heads": 2, "d_ff": 8, "d_kv": 4}
QWEN = {"model_type": "qwen3", **OLD, "num_key_value_heads": 1, "head_dim": 4}
JINA = {"model_type": "bert", **OLD, "position_embedding_type": "alibi", "feed_forward_type": "reglu"}
ESM = {"model_type": "esm", **OLD, "position_embedding_type": "rotary"}


def edited(folder: Path, **changes: Any) -> Path:
    """The folder with some keys of its config.json changed, or taken out where the value is None."""
    config = read_json(folder / "config.json") | changes
    kept = {key: value for key, value in config.items() if value is not None}
    write_json(folder / "config.json", kept)
    return folder


AUTO_MAP = {"AutoModel": "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel"}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_in_files_are_told_by_model_type_or_architecture(name: str, tmp_path: Path) -> None:
    folder = make_family(tmp_path, name, "lm" if name == "qwen3" else "mlm")
    title = family(name).config.title
    assert type(bertcli.load(folder).config).title == title
    assert bertcli.load(edited(folder, model_type=None)).config.model_type == name


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"model_type": "longformer"},
            "type 'longformer'; it runs bert, albert, deberta-v2, deberta, ",
        ),
        ({"architectures": ["GPT2Model"]}, "type 'GPT2Model'; it runs"),
        ({"model_type": "roberta", **OLD, "max_position_embeddings": 2}, "leaves no position for a token"),
        ({"model_type": "roberta", **OLD, "pad_token_id": -1}, "pad_token_id is -1; it must be 0 to 99"),
        ({"model_type": "roberta", **OLD, "is_decoder": True}, "this RoBERTa is a decoder"),
        ({"model_type": "distilbert", "vocab_size": 9, "dim": 8}, "n_layers.* are missing: .* of DistilBERT"),
        (
            {**MODERN, "rope_scaling": {"rope_type": "axial"}},
            "full_attention has rope_type 'axial'; .* with default, lin",
        ),
        ({**MODERN, "rope_parameters": {"rope_type": "yarn"}}, "has rope_type 'yarn' for no type of layer"),
        ({**MODERN, "rope_parameters": {"full_attention": {"rope_type": "linear"}}}, "'linear' without factor"),
        ({**MODERN, "rope_parameters": []}, None),
        ({**MODERN, "rope_parameters": [1]}, "rope_parameters is"),
        ({**MODERN, "layer_types": ["full_attention", "full_attention"]}, "layer_types names 2 of 1 layers"),
        ({**MODERN, "layer_types": ["chunked_attention"]}, "layer_types has 'chunked_attention'"),
        ({**MODERN, "norm_bias": True}, "norm_bias is true"),
        ({**MODERN, "classifier_pooling": "last"}, "classifier_pooling is 'last'"),
        ({**MODERN, "position_embedding_type": "sans_pos"}, None),
        ({**DEBERTA, "pos_att_type": "p2c|p2p"}, "pos_att_type has 'p2p'; known are c2p, p2c"),
        (
            {**DEBERTA, "model_type": "deberta", "talking_head": True},
            "talking_head is true; bertcli runs DeBERTa with f",
        ),
        ({**DEBERTA, "model_type": "deberta", "legacy": False}, "legacy is false; bertcli runs DeBERTa with true"),
        ({**DEBERTA, "relative_attention": None}, "relative_attention is false"),
        ({**DEBERTA, "norm_rel_ebd": "rms"}, "norm_rel_ebd is 'rms'"),
        ({**DEBERTA, "position_buckets": 1100}, "position_buckets is 1100"),
        ({**DEBERTA, "conv_kernel_size": 4}, "conv_kernel_size is 4"),
        ({**NOMIC, "prenorm": True}, "prenorm is true; bertcli runs NomicBERT with false"),
        ({**NOMIC, "rotary_emb_interleaved": True}, "rotary_emb_interleaved is true"),
        ({**NOMIC, "rotary_emb_fraction": 0.5}, "rotary_emb_fraction is 0.5; bertcli runs NomicBERT with 1.0"),
        (
            {**NOMIC, "moe_every_n_layers": 2, "moe_normalize_expert_weights": True},
            "moe_normalize_expert_weights is tr",
        ),
        ({**NOMIC, "moe_every_n_layers": 2, "expert_choice_router": True}, "expert_choice_router is true"),
        ({**NOMIC, "moe_every_n_layers": 2, "num_shared_experts": 1}, "num_shared_experts is 1"),
        ({**NOMIC, "moe_every_n_layers": 2, "moe_top_k": 9}, "moe_top_k is 9; there are 8 experts"),
        ({**NOMIC, "mlp_fc1_bias": True}, "mlp_fc1_bias is true; bertcli runs NomicBERT's gated layers without it"),
        (
            {**NOMIC, "rope_parameters": {"rope_type": "proportional"}},
            "'proportional'; bertcli runs NomicBERT with def",
        ),
        ({**NOMIC, "rope_parameters": {"partial_rotary_factor": 0.5}}, "rope_parameters has a partial_rotary_factor"),
        ({**GTE, "logn_attention_scale": True}, "logn_attention_scale is true; bertcli runs GTE with false"),
        ({**GTE, "rope_scaling": {"type": "ntk"}}, "rope_scaling has rope_type 'ntk' without factor"),
        ({**GTE, "partial_rotary_factor": 0.5}, "rope_parameters has a partial_rotary_factor"),
        ({**JINA, "feed_forward_type": "original"}, "feed_forward_type is 'original'; .* with geglu, reglu"),
        ({**JINA, "position_embedding_type": None}, "position_embedding_type is 'absolute'; .* JinaBERT or MosaicBERT"),
        ({**JINA, "emb_pooler": "cls"}, "emb_pooler is 'cls'; bertcli runs JinaBERT or MosaicBERT with mean"),
        ({**JINA, "feed_forward_type": None}, "position_embedding_type 'alibi' is not supported; BERT uses 'absolute'"),
        ({**EUROBERT, "num_key_value_heads": 3}, "num_attention_heads 2 is not a multiple of num_key_value_heads 3"),
        ({**EUROBERT, "mlp_bias": True}, "mlp_bias is true"),
        (
            {**EUROBERT, "rope_scaling": {"rope_type": "ntk", "factor": 8.0}},
            "rope_scaling has rope_type 'ntk'; .* EuroBERT",
        ),
        (
            {**EUROBERT, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
            "rope_scaling has rope_type 'llama3'; bertcli runs EuroBERT with def",
        ),
        ({**QWEN, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type 'dynamic'; bertcli runs Qwen3 w"),
        ({**GTE, "rope_parameters": {"rope_type": "longrope"}}, "; bertcli runs GTE with default, linear, yarn, ntk"),
        (
            {**GEMMA, "rope_parameters": {"full_attention": {"rope_type": "llama3"}}},
            "rope_parameters.full_attention has rope_type 'llama3'; bertcli runs ",
        ),
        ({**EUROBERT, "rope_parameters": {"rope_type": "yarn", "factor": 0.5}}, "factor is 0.5; it must be at least 1"),
        ({**EUROBERT, "rope_parameters": {"full_attention": {}}}, "rope_parameters is one for each type of layer"),
        ({**GEMMA, "is_causal": False}, "is_causal is false; bertcli runs Gemma 3 with true"),
        ({**QWEN, "use_bidirectional_attention": True}, "use_bidirectional_attention is true, but attention is causal"),
        ({**QWEN, "use_bidirectional_attention": True, "is_causal": False}, None),
        ({**QWEN, "layer_types": ["sliding_attention"]}, "layer_types has 'sliding_attention', but use_sliding_window"),
        ({**QWEN, "use_sliding_window": True, "sliding_window": None}, None),
        ({**T5, "relative_attention_num_buckets": 3}, "relative_attention_num_buckets is 3; it must be at least 4"),
        ({**T5, "relative_attention_num_buckets": 512}, "relative_attention_num_buckets is 512; .* at most 511"),
        ({**MPNET, "relative_attention_num_buckets": 64}, "relative_attention_num_buckets is 64; .* MPNet with 32"),
        ({**T5, "relative_attention_max_distance": 64}, None),
        ({**T5, "relative_attention_max_distance": 8}, "num_buckets is 32; with a .*_max_distance of 8 it .* most 31"),
        ({**T5, "relative_attention_max_distance": 1}, "relative_attention_max_distance is 1; it must be at least 2"),
        ({**T5, "feed_forward_proj": "gated-swish-relu"}, "hidden_act is 'gated-swish-relu'; bertcli runs T5 with"),
        ({**T5, "d_model": None}, "d_model is missing: this is not the config.json of T5"),
        ({**T5, "is_encoder_decoder": True}, None),
        ({**GEMMA, "attn_logit_softcapping": 50.0}, "attn_logit_softcapping is 50.0"),
        ({**GEMMA, "rope_parameters": {"full_attention": {"rope_type": "su"}}}, "full_attention has .* 'su'; "),
        ({**ESM, "position_embedding_type": "absolute"}, "position_embedding_type is 'absolute'; .* ESM-2 with rotary"),
        ({**ESM, "position_embedding_type": None}, "position_embedding_type is 'absolute'"),
        ({**ESM, "emb_layer_norm_before": True}, "emb_layer_norm_before is true"),
        ({**ALBERT, "inner_group_num": 2}, "inner_group_num is 2"),
        ({**ALBERT, "num_hidden_groups": 3}, "num_hidden_groups is 3; it must be at most num_hidden_layers, 1"),
    ],
)
def test_families_in_files_configs_are_checked(config: dict[str, Any], message: str | None) -> None:
    if message is None:
        parse_config(config)
        return
    with pytest.raises(BertcliError, match=message):
        parse_config(config)


def test_families_in_files_a_head_may_be_no_more_than_the_embeddings(tmp_path: Path) -> None:
    folder = make_family(tmp_path, "eurobert", "model", config={"architectures": ["EuroBertForMaskedLM"]})
    assert bertcli.load(folder).heads == ()
    model = bertcli.load(edited(folder, tie_word_embeddings=True))
    assert model.heads == ("mlm",)
    assert model.network.mlm.decoder is model.network.embeddings.token


def test_families_in_files_frequencies_are_those_of_the_file(tmp_path: Path) -> None:
    model = bertcli.load(make_family(tmp_path, "esm", "model"))
    (rates,) = {layer.attention.inverse_frequencies for layer in model.network.encoder.layers}
    stored = open_tensors(Folder(tmp_path))["esm.rotary_embeddings.inv_freq"]
    assert rates == tuple(stored.float32().tolist())
    assert model.notes == ()


def test_families_in_files_older_keys_say_the_same_as_newer_ones() -> None:
    older = {
        "vocab_size": 100, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_inner": 16, "n_positions": 8192,
        "layer_norm_epsilon": 1e-6, "activation_function": "swiglu", "rotary_emb_base": 500, "prenorm": False,
    }  # fmt: skip
    newer = {**OLD, "max_position_embeddings": 8192, "layer_norm_eps": 1e-6, "hidden_act": "silu"}
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": 500}}
    nomic = parse_config({"model_type": "nomic_bert", **older})
    assert nomic == parse_config({"model_type": "nomic_bert", **newer, **rope})
    assert nomic.max_tokens == 2048  # for which it was trained
    scaled = {**OLD, "rope_theta": 500, "rope_scaling": {"type": "ntk", "factor": 16}}
    gte = parse_config({"model_type": "new", **scaled})
    assert isinstance(gte, GteConfig)
    assert gte.inverse_frequencies[0] == pytest.approx((0.25, 0.25 / 8000**0.5))  # (θ·f)^(-2j/D) / f^(2/D) for D = 4


def test_families_in_files_version_1_of_deberta_does_not_read_keys_of_version_2() -> None:
    first = {**DEBERTA, "model_type": "deberta"}
    later = {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True, "conv_kernel_size": 3}
    assert parse_config({**first, **later}) == parse_config(first)
    for key, value in later.items():
        assert parse_config({**DEBERTA, key: value}) != parse_config(DEBERTA), "version 2 does"


def test_families_in_files_code_of_their_own_is_told_by_its_keys(tmp_path: Path) -> None:
    """A config.json that says "bert" is not counted as BERT where keys tell that it is not."""
    sizes = {"vocab_size": 4096, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
             "intermediate_size": 3072, "model_type": "bert", "architectures": ["BertModel"]}  # fmt: skip
    for keys, params in (
        ({}, 89_187_072),
        ({"alibi_starting_size": 512}, 117_068_544),
        ({"position_embedding_type": "alibi", "feed_forward_type": "geglu"}, 117_068_544),
        ({"position_embedding_type": "alibi", "feed_forward_type": "geglu", "auto_map": AUTO_MAP}, 117_123_840),
    ):
        write_json(tmp_path / "config.json", sizes | keys)
        out = command("params", "--config", tmp_path / "config.json").out
        assert f"Total params: {params:,}" in out
    slopes = parse_config({**JINA, "hidden_size": 24, "num_attention_heads": 12}).slopes  # type: ignore[attr-defined]
    halves = [0.5**n for n in range(1, 9)]
    assert slopes[0] == pytest.approx([*halves, *(0.5 ** (n + 0.5) for n in range(4))])


def test_families_in_files_texts_without_positions_are_as_long_as_you_like(tmp_path: Path) -> None:
    model = bertcli.load(make_family(tmp_path, "jina_bert", "model"))  # max_position_embeddings 64
    assert model.forward([[7] * 3000]).shape == (1, 3000, 32)


def test_families_in_files_capacity_and_segments() -> None:
    configs = {name: member.variant(name) for name, member in variants().items()}
    found = {name: (config.max_tokens, config.segment_count) for name, config in configs.items()}
    assert found["roberta-base"] == found["xlm-roberta-large"] == found["mpnet-base"] == (512, 1)
    assert found["distilbert-base"] == found["deberta-v3-base"] == (512, 1)
    assert found["electra-small"] == found["albert-base"] == found["base"] == (512, 2)
    assert found["modernbert-base"] == (8192, 1)


def test_families_in_files_models_that_fill_no_masks_say_why(tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match=r"its heads: rtd\. Of ELECTRA's two models only the generator fills masks"):
        bertcli.load(make_family(tmp_path / "electra", "electra", "rtd")).fill_mask(["a"])
    with pytest.raises(BertcliError, match=r"DeBERTa fills masks with cls\.predictions"):
        bertcli.load(make_family(tmp_path / "deberta", "deberta-v2", "model")).fill_mask(["a"])
    with pytest.raises(BertcliError, match="predicts the next word, not one that is masked"):
        bertcli.load(make_family(tmp_path / "qwen3", "qwen3", "lm")).fill_mask(["a"])


def test_families_in_files_shared_layers_are_stored_and_counted_once(tmp_path: Path) -> None:
    model = bertcli.load(make_family(tmp_path, "albert", "mlm", sizes={"L": 5, "G": 2}))
    layers = model.network.encoder.layers
    assert [layers.index(layer) for layer in layers] == [0, 0, 0, 3, 3]
    rows = {row.path: row for row in bertcli.params(model, depth=2).rows}
    assert rows["encoder.layers.0"].params == rows["encoder.layers.3"].params > 0
    assert [rows[f"encoder.layers.{i}"].params for i in (1, 2, 4)] == [0, 0, 0]
    assert str(rows["encoder.layers.4"].tied_to).startswith("encoder.layers.3.")
    stored = sum(use.bytes for use in model.tensor_uses)
    assert sum(row.bytes for row in rows.values()) == stored


def test_families_in_files_parts_of_one_tensor_are_views_of_it(tmp_path: Path) -> None:
    model = bertcli.load(make_family(tmp_path, "modernbert", "model", dtype="F16"))
    (use,) = [use for use in model.tensor_uses if use.name.endswith("layers.2.attn.Wqkv.weight")]
    assert use.paths == [f"encoder.layers.2.attention.{part}.weight" for part in ("query", "key", "value")]
    attention = model.network.encoder.layers[2].attention
    assert attention.query.weight.base is attention.value.weight.base
    assert bertcli.params(model).total_bytes == sum(use.bytes for use in model.tensor_uses)


@pytest.mark.parametrize(
    ("name", "setting", "heads"),
    [
        ("electra", {"summary_type": "mean"}, ("multiple_choice",)),
        ("electra", {"summary_activation": "tanh"}, ("multiple_choice",)),
        ("deberta-v2", {"pooler_hidden_act": "softsign"}, ("classifier", "multiple_choice")),
    ],
)
def test_families_in_files_settings_of_a_head_are_refused_with_it(
    name: str, setting: dict[str, Any], heads: tuple[str, ...], tmp_path: Path
) -> None:
    (key,) = setting
    for head in FAMILIES[name].heads:
        folder = edited(make_family(tmp_path / head, name, head), **setting)
        if head in heads:
            with pytest.raises(BertcliError, match=f"{key} is '{setting[key]}'; bertcli runs"):
                bertcli.load(folder)
        else:
            assert bertcli.load(folder).forward([[1, 2]]).shape[:2] == (1, 2)
        assert bertcli.load(folder, heads="none").heads == ()
