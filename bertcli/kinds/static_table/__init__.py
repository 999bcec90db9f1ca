"""A static model (StaticEmbedding, model2vec): a text's vector is the mean of the rows of a table, one for each token.

kind         `StaticTable`: what it is for
folder_type  such a folder has tokenizer.json and a table; the table's tensor says how large it is; **how many tokens of
             a text model2vec's models read**
weights      open the table

models/static.py is the family: a network whose hidden states are the table's rows.
"""
