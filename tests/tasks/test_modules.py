"""Cross-encoders and Routers made of modules: the numbers of sentence-transformers, and nothing skipped."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.bin_files import convert
from helpers.checkpoints import make
from helpers.modular import DOCUMENTS, QUERY, write_cross_encoder, write_router
from helpers.terminal import bertcli as run

import bertcli
from bertcli.checkpoint.folder import Folder
from bertcli.checkpoint.folders import missing
from bertcli.errors import BertcliError

RECORDED = json.loads((Path(__file__).parents[1] / "reference" / "modules.json").read_text())


@pytest.mark.parametrize("pickled", [False, True])
def test_a_modular_cross_encoder_ranks(tmp_path: Path, pickled: bool) -> None:
    folder = write_cross_encoder(tmp_path / "model")
    model = bertcli.load(convert(folder) if pickled else folder)
    records = sorted(model.rank(QUERY, DOCUMENTS), key=lambda record: int(record["corpus_id"]))
    np.testing.assert_allclose([record["score"] for record in records], RECORDED["scores"], rtol=0, atol=1e-5)
    assert missing(Folder(folder)) == []
    with pytest.raises(BertcliError, match="scores pairs: use rank, or choose a pooling"):
        model.encode(["a text"])
    assert model.encode(["a text"], pooling="cls").shape == (1, 32)


@pytest.mark.parametrize("path", ["document_0_Transformer", ""])
def test_a_router_encodes_documents(tmp_path: Path, path: str) -> None:
    folder = write_router(tmp_path / "model", path)
    assert missing(Folder(folder)) == []
    for (indices, values), wanted in zip(
        bertcli.load(folder).encode_sparse(DOCUMENTS), RECORDED["sparse"], strict=True
    ):
        assert indices.tolist() == [int(index) for index in wanted]
        np.testing.assert_allclose(values, [*wanted.values()], rtol=0, atol=1e-5)
    assert "; the route for documents." in run("encode", "--sparse", "-m", folder, "tea").err


def test_a_routers_queries_do_not_take_the_route_of_documents(tmp_path: Path) -> None:
    folder = write_router(tmp_path / "model")
    result = run("encode", "--sparse", "-m", folder, "--prompt-name", "query", "tea")
    assert (result.status, result.out) == (1, "")
    assert "reads queries by a route of their own, which bertcli does not run" in result.err
    assert bertcli.load(folder).encode_sparse(["tea"], prompt_name="document")


def test_modules_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "a")
    (folder / "3_LayerNorm" / "config.json").write_text('{"dimension": 7}')
    with pytest.raises(BertcliError, match=r"has tensor norm.weight of shape \(32,\); .* says \(7,\)"):
        bertcli.load(folder).rank(QUERY, DOCUMENTS)
    folder = write_cross_encoder(tmp_path / "b")
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:-1]))
    with pytest.raises(BertcliError, match="lists a LayerNorm, which only a cross-encoder may have"):
        bertcli.load(folder).encode(["a text"])
    folder = write_router(tmp_path / "c")
    (folder / "router_config.json").write_text('{"types": {}, "structure": {"query": []}}')
    with pytest.raises(BertcliError, match=r"router_config.json has no route for documents: use another model\."):
        bertcli.load(folder)


def test_a_model_with_code_of_its_own_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path, config={"auto_map": {"AutoModel": "modeling.Model"}})
    assert bertcli.load(folder)  # its weights are those of BERT
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(BertcliError, match=r"lacks the tensor .*: it has code of its own \(auto_map in config.json\)"):
        bertcli.load(folder)
