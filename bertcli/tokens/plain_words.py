"""Words of a text in any script, whatever the model: those among which `keywords` chooses.

A word is letters, digits and marks, with hyphens, apostrophes and joiners inside; each Chinese character is one. Not
here: the words of a model's own tokenizer (`Tokens.words`).
"""

from functools import cache

from tokenizers import Regex, pre_tokenizers

from bertcli.tokens.words import Word

# Oniguruma's \\w has marks, too, so that no letter of Hindi or Arabic is cut. Within a word there may be hyphens,
# apostrophes, a middle dot (Catalan), soft hyphens, and the joiners of Persian and Indic scripts.
LETTERS = r"[\w&&[^\p{Han}]]+"
WORD = rf"\p{{Han}}|{LETTERS}(?:[-'’·\u2010\u2011\u00ad\u200c\u200d]{LETTERS})*"


@cache
def _splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(WORD), "removed", invert=True)


def words_of(text: str) -> list[Word]:
    """The words of a text, and their characters."""
    return [Word(word, start, end) for word, (start, end) in _splitter().pre_tokenize_str(text)]


def stands_alone(character: str) -> bool:
    """True for a Chinese character, which is a word however it is surrounded."""
    return len(words_of(character + character)) == 2
