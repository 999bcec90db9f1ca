"""Tasks of a model: a file for each with its spec (options, record, table); compute/ has the code that runs it.

answer         the answer to a question in a text
classify       labels of a classifier, zero-shot, multiple choice, next sentence
encode         texts to vectors, dense or sparse
encode_output  what `encode` makes of a text: a vector, one a token, a sparse one; **which files can hold it**
examples       examples of commands that suit a model, with texts in its language and format
fill_mask      the words that fit a mask
limits         what a request may cost: the bounds of a door, and the sizes that are compared with them; **what is
               multiplied to a size**
options        declare the options of a task or a command once, for Python and for the command line; **which options are
               for Python and HTTP alone**
prompt_options the options of tasks that give vectors: prompts, chunks; **that these exclude one another**
rank           documents by relevance to a query
registry       find the specs of tasks: `TaskSpec` holds a task's options, needs, inputs, record and table; **what a
               task needs, reads and answers**
request        a request, which every door makes; `begin` is the only way from one to a task; **what is refused
               before any work, and in which order** (rows that cannot be read: cli/request)
score          how probable each token is, given the others
tag            entities, and redaction
window_options the options of tasks that read long texts in windows; **that these never cut a text**
"""
