"""Labelled texts from files, as `evaluate` and `probe` read them: tables with named fields, and CoNLL's columns.

rows    a text with its label, words with their tags, and the count of rows left out
fields  the fields of a row: the names that each may have, and what it may hold
tables  read a table: which of some tasks its fields are of, and each row
conll   read files of a word a line with its tag
"""
