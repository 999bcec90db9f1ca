"""Read labelled data: SQuAD, BEIR and TREC files; tables and CoNLL are in files/labelled/. Begin at data_file.py.

beir         read a BEIR folder (queries, corpus, qrels) and TREC's qrels and runs; write a run; **which columns TREC's
             files have**
data_file    read DATA of `bertcli evaluate`: choose the reader by the file's ending and content; **which task a file is
             for**
given_spans  entities by characters, in a field of a row; **how data may say where one is**
labelled     the data as it was read, with its task
squad        read SQuAD's JSON, 1.1 and 2.0: articles of paragraphs with questions
"""
