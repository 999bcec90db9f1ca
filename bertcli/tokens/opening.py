"""A tokenizer's files -> an object of the tokenizers library, ready for use."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordPiece

from bertcli.errors import BertcliError
from bertcli.tokens.checks import GROWTH_LIMIT, growth, lacking, library_errors
from bertcli.tokens.settings import TokenizerSettings, read_vocabulary
from bertcli.untrusted import VOCABULARY_LIMIT, read_whole, shown


def open_backend(folder: Path, settings: TokenizerSettings) -> Backend:
    """The tokenizer in a checkpoint's folder: tokenizer.json, else BERT's own tokenizer with vocab.txt.

    A tokenizer.json that exists but cannot be read is an error; vocab.txt is not used instead. Special tokens in a text
    are recognised, and [CLS] and [SEP] are put around it unless the file says otherwise.
    """
    file = folder / "tokenizer.json"
    backend = _from_json(file) if file.exists() or file.is_symlink() else _from_vocabulary(folder, settings)
    _add_special_tokens(backend, settings)
    if backend.post_processor is None:
        _frame_as_bert(backend, settings, folder)
    return backend


def _from_json(file: Path) -> Backend:
    data = read_whole(file, VOCABULARY_LIMIT)
    with library_errors(f"{file} cannot be read as a tokenizer"):
        backend = Backend.from_buffer(data)
    if backend.normalizer is not None and growth(json.loads(backend.normalizer.__getstate__())) > GROWTH_LIMIT:
        raise BertcliError(f"{file} makes texts more than {GROWTH_LIMIT:,} times as long: do not use this model.")
    if backend.post_processor is not None:
        for token in lacking(json.loads(backend.post_processor.__getstate__())):
            raise BertcliError(f"{file} puts {shown(token)} around texts but gives it no id: fetch the model again.")
    backend.no_truncation()  # the stored settings are those of its training run; the limit is set at every encode
    backend.no_padding()
    return backend


def _from_vocabulary(folder: Path, settings: TokenizerSettings) -> Backend:
    """BERT's own tokenizer with the word pieces of vocab.txt."""
    if not (folder / "vocab.txt").exists():
        raise BertcliError(
            f"{folder} has neither tokenizer.json nor vocab.txt: give the folder of a model, or fetch this one again."
        )
    backend = Backend(WordPiece(read_vocabulary(folder / "vocab.txt"), unk_token=settings.unk.content))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.tokenize_chinese_chars,
        strip_accents=settings.strip_accents,
        lowercase=settings.do_lower_case,
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return backend


def _add_special_tokens(backend: Backend, settings: TokenizerSettings) -> None:
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    missing = [token for token in settings.special if token.content not in known]
    backend.add_special_tokens(
        [
            AddedToken(**token._asdict(), special=True)
            for token in missing
            if backend.token_to_id(token.content) is not None
        ]
    )


def _frame_as_bert(backend: Backend, settings: TokenizerSettings, folder: Path) -> None:
    first, last = settings.cls.content, settings.sep.content
    ids = [(token, backend.token_to_id(token)) for token in (first, last)]
    missing = ", ".join(token for token, id in ids if id is None)
    if missing:
        raise BertcliError(f"The vocabulary in {folder} lacks {missing}, which BERT puts around every text.")
    backend.post_processor = processors.TemplateProcessing(
        single=[f"{first}:0", "$A:0", f"{last}:0"],
        pair=[f"{first}:0", "$A:0", f"{last}:0", "$B:1", f"{last}:1"],
        special_tokens=ids,
    )
