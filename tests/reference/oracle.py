"""transformers and sentence-transformers as the reference: float32, eager attention, one thread. Needs PyTorch."""
# mypy: disable-error-code="import-not-found"

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from helpers.checkpoints import ARCHITECTURES
from numpy.typing import NDArray
from reference.cases import Batch
from reference.outputs import Outputs
from sentence_transformers import SentenceTransformer

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)
torch.manual_seed(0)

Array = NDArray[Any]


def load(folder: Path, head: str) -> Any:
    """The transformers model of a checkpoint; a tensor left random is an error, unless it is a missing pooler."""
    model, report = getattr(transformers, ARCHITECTURES[head]).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    left_random = {name for name in report["missing_keys"] if "pooler" not in name}
    config = model.config
    if not config.tie_word_embeddings:
        left_random -= {"cls.predictions.bias"}  # present twice, used once
    if left_random or report["mismatched_keys"] or report["unexpected_keys"]:
        raise ValueError(f"{folder}: {report}")
    model.pooler_is_stored = not any("pooler" in name for name in report["missing_keys"])
    return model.eval()


def outputs(model: Any, batch: Batch) -> Outputs:
    """Everything the model computes for a right-padded batch."""
    arguments = arguments_of(batch)
    with torch.inference_mode():
        whole = model(**arguments, output_hidden_states=True)
        base = getattr(model, "bert", model)(**arguments)
    counted = batch.mask.astype(bool)
    states = np.stack([state.numpy()[counted] for state in whole.hidden_states])
    logits = getattr(whole, "logits", None)
    kind = type(model).__name__
    words = whole.prediction_logits if kind == "BertForPreTraining" else logits if kind == "BertForMaskedLM" else None
    following = {"BertForPreTraining": getattr(whole, "seq_relationship_logits", None),
                 "BertForNextSentencePrediction": logits}.get(kind)  # fmt: skip
    pooler = base.pooler_output if model.pooler_is_stored else None
    return Outputs(
        states=states,
        pooled=None if pooler is None else pooler.numpy(),
        log_probabilities=None if words is None else torch.log_softmax(words, -1).numpy()[counted],
        next_sentence=None if following is None else torch.softmax(following, -1).numpy(),
        labels=logits.numpy() if logits is not None and kind == "BertForSequenceClassification" else None,
    )


def hidden_states(model: Any, batch: Batch) -> Array:
    """[layer + 1, batch, token, hidden], padding included."""
    with torch.inference_mode():
        found = model(**arguments_of(batch), output_hidden_states=True).hidden_states
    return np.stack([state.numpy() for state in found])


def attentions(model: Any, batch: Batch) -> Array:
    """Attention weights [layer, batch, head, query, key]."""
    with torch.inference_mode():
        found = model(**arguments_of(batch), output_attentions=True).attentions
    return np.stack([weights.numpy() for weights in found])


def arguments_of(batch: Batch) -> dict[str, torch.Tensor]:
    """A batch as transformers names it."""
    names = ("input_ids", "token_type_ids", "attention_mask")
    return {name: torch.from_numpy(values) for name, values in zip(names, batch, strict=True)}


def pipeline(task: str, folder: Path, head: str) -> Any:
    """The transformers pipeline of a task on a checkpoint."""
    model, tokenizer = load(folder, head), transformers.BertTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = model.config.max_position_embeddings
    return transformers.pipeline(task, model=model, tokenizer=tokenizer, device="cpu")


def pseudo_log_likelihood(folder: Path, head: str, text: str) -> list[tuple[str, float]]:
    """log p(token | the others) of every token but [CLS] and [SEP], each masked in a pass of its own."""
    model, tokenizer = load(folder, head), transformers.BertTokenizer.from_pretrained(folder)
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    found = []
    for position in range(1, ids.shape[1] - 1):
        masked = ids.clone()
        masked[0, position] = tokenizer.mask_token_id
        with torch.inference_mode():
            out = model(input_ids=masked)
        logits = out.prediction_logits if head == "pretraining" else out.logits
        token = int(ids[0, position])
        log_probability = torch.log_softmax(logits[0, position], -1)[token].item()
        found.append((tokenizer.convert_ids_to_tokens(token), log_probability))
    return found


def sentence_vectors(folder: Path, texts: Sequence[str]) -> Array:
    """What sentence-transformers makes of the folder."""
    exact = {"dtype": torch.float32, "attn_implementation": "eager"}
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs=exact)
    return np.asarray(model.encode(list(texts), batch_size=4, show_progress_bar=False, convert_to_numpy=True))


def tokenized(folder: Path, text: str, pair: str | None = None, limit: int | None = None) -> Any:
    """What transformers' BertTokenizer makes of a text: `input_ids`, `token_type_ids` and `offset_mapping`."""
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    return tokenizer(text, pair, truncation=limit is not None, max_length=limit, return_offsets_mapping=True)
