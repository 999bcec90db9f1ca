"""English stop words, for `keywords`, and whether texts are English: words that stand in nearly every text.

Those of scikit-learn (from the Glasgow Information Retrieval Group), which KeyBERT takes, without the nouns and verbs
that may well be what a text is about (bill, computer, fire, interest, system, …), and with the contractions, which are
one word here.
"""

from collections.abc import Sequence

from bertcli.tokens.plain_words import words_of

# The language is doubted if of this many words or more so small a share are English stop words: in English text it is
# about 0.4, in German, French, Dutch, Italian, Spanish below 0.1.
FEWEST_WORDS, SMALLEST_SHARE = 20, 0.15
MOST_COUNTED = 1000  # words that are looked at for this
WORDS = """
a about above across after afterwards again against all almost alone along already also although always am among
amongst an and another any anyhow anyone anything anyway anywhere are around as at back be became because become
becomes becoming been before beforehand behind being below beside besides between beyond both but by can cannot
cant co con could couldnt de do does did doing done down due during each eg eight either eleven else elsewhere
enough etc even ever every everyone everything everywhere except few fifteen fifty first five for former formerly
forty four from further get give go had has hasnt have having he hence her here hereafter hereby herein hereupon
hers herself him himself his how however hundred i ie if in inc indeed into is it its itself just keep last latter
latterly least less ltd made many may me meanwhile might mine more moreover most mostly much must my myself namely
neither never nevertheless next nine no nobody none noone nor not nothing now nowhere of off often on once one only
onto or other others otherwise our ours ourselves out over own per perhaps please put rather re same see seem seemed
seeming seems several she should since six sixty so some somehow someone something sometime sometimes somewhere
still such ten than that the their theirs them themselves then thence there thereafter thereby therefore therein
thereupon these they third this those though three through throughout thru thus to together too toward towards
twelve twenty two under until up upon us very via was we well were what whatever when whence whenever where
whereafter whereas whereby wherein whereupon wherever whether which while whither who whoever whole whom whose why
will with within without would yet you your yours yourself yourselves
ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't needn't shan't
shouldn't wasn't weren't won't wouldn't he'd he'll he's here's how's i'd i'll i'm i've it'd it'll it's let's she'd
she'll she's that'll that's there's they'd they'll they're they've we'd we'll we're we've what's where's who's
why's you'd you'll you're you've
"""
ENGLISH_STOP_WORDS = frozenset(WORDS.split())


class StopWordCount:
    """The number of English stop words among the first words of texts."""

    def __init__(self) -> None:
        self.words = self.stop_words = 0

    def add(self, texts: Sequence[str]) -> None:
        """Count the words of texts, unless enough are counted."""
        if self.words > MOST_COUNTED:
            return
        for text in texts:
            words = words_of(text)[:MOST_COUNTED]
            self.words += len(words)
            self.stop_words += sum(folded(word.text) in ENGLISH_STOP_WORDS for word in words)

    @property
    def are_of_another_language(self) -> bool:
        """True if so few of the words are stop words that the texts are hardly English; false for a few words."""
        return self.words >= FEWEST_WORDS and self.stop_words < SMALLEST_SHARE * self.words


def folded(text: str) -> str:
    """A text without case and with the plain apostrophe."""
    return text.casefold().replace("’", "'")
