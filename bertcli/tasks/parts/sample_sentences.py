"""Built-in sentences that have little to do with each other: for the loss of int8, and what is near by chance."""

SUBJECTS = (
    "The old bridge", "My neighbour's dog", "A new law on rents", "Our team of engineers", "The price of coffee",
    "Nobody in the village", "This phone", "The second symphony",
)  # fmt: skip
PREDICATES = (
    "was closed for repairs after the storm.", "has changed more in a year than anyone expected.",
    "made me laugh, although I was tired.", "will be discussed in parliament on Tuesday at 10 a.m.",
    "is not worth the 49.90 euros that I paid.", "reminds visitors of a time before electricity!",
    "never arrived; can you please send it again?", "depends on temperature, pressure and a little luck.",
)  # fmt: skip
SENTENCES = tuple(f"{subject} {predicate}" for subject in SUBJECTS for predicate in PREDICATES)
