"""Texts to tokens: open a checkpoint's tokenizer, and run it. Only this package imports the tokenizers library.

aborting        refuse a tokenizer.json that would abort the process inside the tokenizers library
charsmap        check a sentencepiece model's precompiled_charsmap; **which maps are refused**
chat            chat templates of rerankers: read the text before, between and after a query and a document; **which
                templates are read**
library         turn failures of the tokenizers library into a BertcliError of one line; **that the library's own lines
                are not seen**
load_tokenizer  load a tokenizer's files into an object of the tokenizers library, set up as transformers does; **which
                of several files counts**
missing_tokens  add tokens and steps that a tokenizer's files lack, and that its class in transformers adds
plain_words     words of a text in any script, whatever the model: those among which `keywords` chooses
settings        read a tokenizer's settings: tokenizer_config.json, special_tokens_map.json and added_tokens.json; **the
                tokenizer's own limit**
slow            build a tokenizer from vocab.txt, merges.txt or a sentencepiece model where tokenizer.json is missing
template        `Tokens` of a text or pair, and what is put around them; **which half of a pair is cut, and on which
                side**
word_places     the word that a piece belongs to, where labelled data give the words
text_words      the words of a text, as its tokenizer calls them (`word_ids`); **which pieces are one word**
tokenizer       `Tokenizer`: a checkpoint's vocabulary, and the encoding of texts to `Tokens` (template.py); **that
                equal texts of a call are tokenized once; which texts are too long**
windows         split the tokens of a long text into overlapping windows, for `tag` and `answer`; **how much windows
                share**
words           a word with its characters; scripts without spaces between words
"""

from bertcli.tokens.template import Tokens
from bertcli.tokens.tokenizer import Spelling, Tokenizer, refuse_long

__all__ = ["Spelling", "Tokenizer", "Tokens", "refuse_long"]
