"""Read labelled data: tables, CoNLL, SQuAD, BEIR and TREC files, as rows with their labels. Begin at data_file.py.

beir       read a BEIR folder (queries, corpus, qrels) and TREC's qrels and runs; write a run
conll      read CoNLL files: a word a line with its tag, an empty line after each sentence
data_file  read DATA of `bertcli evaluate` and `probe`: choose the reader by the file's ending and content
fields     the fields of a table's rows: their names, and what they may hold
labelled   the data as it was read, rows with their labels, and the count of rows that could not be used
squad      read SQuAD's JSON, 1.1 and 2.0: articles of paragraphs with questions
tables     read a table of labelled texts (.csv, .jsonl, .parquet …): find its task by its fields, and read each row
"""
