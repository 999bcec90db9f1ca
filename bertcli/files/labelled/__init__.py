"""Labelled texts from files, as `evaluate` and `probe` read them: tables with named fields, and CoNLL's columns.

rows    a text with its label, words with their tags, and the count of rows left out; **what --keep-going leaves out**
fields  the fields of a row: the names that each may have, and what it may hold; **which names a field may have**
tables  read a table: which of some tasks its fields are of, and each row; **which task a table is for, and which column
        clusters**
conll   read files of a word a line with its tag; **where a sentence ends**
"""
