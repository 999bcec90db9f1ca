"""How a task is run: windows of texts, batches, processes.

batches  run sentences through a model and its heads, in micro-batches
run      from texts to results, a window at a time, in input order: in this process, or shared by several
task     the base class of tasks: tokenize texts in windows, and compute the result of each window
workers  worker processes that compute windows (`workers`): start them, divide the cores among them, end them
"""
