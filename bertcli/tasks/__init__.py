"""Tasks of a model: a file for each with its spec (options, record, table); compute/ has the code that runs it."""
