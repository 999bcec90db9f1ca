"""How a task is run: groups of texts, batches, processes.

batches  run sentences through a model and its heads, in micro-batches; **how many texts are computed together; the
         error for a head that is missing**
run      from texts to results, a group at a time, in input order: in this process, or shared by several; **how many
         processes, and from when**
task     the base class of tasks: tokenize texts in groups, and compute the result of each group; **where a text is cut
         (`length_limit`), and which texts fail**
workers  worker processes that compute groups (`workers`): start them, divide the cores among them, end them
"""
