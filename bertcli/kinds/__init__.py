"""What a model gives, as one object: a vector for a text, one for each token, a score of a pair.

read              from a Layout (folder/layout.py) to the object: asks the kinds below in turn; **which is its kind**
kind              `Kind`: what every kind answers, and the answers of a model without settings
opened            what a kind reads of an opened model
modules           what the list of sentence-transformers' modules says, whatever the kind
candidate_labels  what scores candidates that a request names
entities          what finds entities of types that a request names
label_scores      what scores labels in place of a network's head
pooling           a Pooling module; **which pooling a folder has that names none**
vectors           hidden states to the vector of a text; **where a vector is cut, and when it has length 1**
pair_scores       the logits of pairs, where modules compute them
graph             what adds the steps after the network to a graph of another engine
late_interaction  the settings of queries and documents in late interaction
scored_tokens     which tokens have a vector in late interaction; **how a query is filled up**
relevance         how relevant a document is to a query, where each is encoded apart
max_sim           how well the token vectors of a document match those of a query
layers            Dense, LayerNorm, a cross-encoder's activation
routes            a Router's routes, which the name of a prompt chooses; **which route a text takes**
query_tables      a Router's table of query weights
sparse_vectors    sparse vectors, and what computes them of hidden states; **which entries stay; how they are compared**

Outside of these files nobody asks which kind it is. Each kind below is a file, or a folder of files, that KINDS names.
Where it is deleted together with its lines here, a model of that kind is taken for a dense encoder. Wings bring more
kinds (`kind_folders` of an `Extension`), which brought.py asks.

classifier/       a classifier of one's own, on the states of a model of any kind
cross_encoder     a cross-encoder made of modules
multi_vector/     a multi-vector encoder (ColBERT), with its settings
brought           what a kind of a wing or a plugin gives
several_outputs/  a model of several outputs (bge-m3); its folder is of a type of its own
sparse_encoder    a sparse encoder (SPLADE)
static_table/     a static model (StaticEmbedding, model2vec); its folder is of a type of its own
task_adapters/    an encoder with an adapter for each task (jina-embeddings-v5), which its folder has
"""

# By module, what it is. The first whose `read` knows a folder is the model's kind.
KINDS = {
    "classifier.kind": "labels by a classifier of one's own, and what its base gives",
    "brought": "what a kind of a wing or a plugin gives",
    "cross_encoder": "the score of a pair, from modules",
    "sparse_encoder": "a weight for each entry of the vocabulary (SPLADE)",
    "multi_vector.kind": "a vector for each token, for late interaction (ColBERT)",
    "several_outputs.kind": "a dense vector, and weights and vectors of tokens beside it (bge-m3)",
    "static_table.kind": "the mean of the rows of a table",
    "task_adapters.kind": "a vector for a text, by the adapter of a task",
    "dense": "a vector for a text",
}
