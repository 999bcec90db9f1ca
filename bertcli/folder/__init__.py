"""Find a model's folder (hub.py), and read once what its small files say (layout.py). Tensors are read in weights/.

adapter           settings of peft's adapters (LoRA); **which keys are applied, harmless or refused**
cache             the Hugging Face cache: find a model in it, and list the files that a cached model still lacks; **is a
                  cached model complete**
companions        models in two folders: a base and its adapter, a network and its backbone; **which base an adapter
                  has**
download          download a model with huggingface_hub into its cache; **which files of a repository are fetched, and
                  when again**
files             read a model's files; **how large and how deep a file may be**
folder_types      types of folders that another library marks; the kinds bring them; **whose configuration and tokenizer
                  count**
hub               find the folder of a model by its name; **is a name a folder, a bundled model or one of the Hub;
                  what is done with an incomplete copy**
layout            `Layout`: where a folder's network, tokenizer and modules lie, read when it is asked for; **which
                  files of a folder are the network's**
missing_files     make the errors for a folder without weights or tokenizer; **what is said of a folder in another
                  format**
model_files       the names of the files that a model is read from; **which files -o never replaces**
modules           the modules of a sentence-transformers folder; **which orders of modules run**
prompts           read the prompts in config_sentence_transformers.json: by name, and the default one; **which prompt is
                  the default**
router            tables of query weights: the routes of a sentence-transformers Router beside the one for documents;
                  **which routes are followed**
transformer       read the settings of the Transformer module (sentence_bert_config.json); **what a model's own limit of
                  tokens is; which of its arguments are applied**
"""
