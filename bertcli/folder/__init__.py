"""Find a model's folder (hub.py), and read once what its small files say (layout.py). Tensors are read in weights/.

adapter           settings of peft's adapters (LoRA)
arguments         rare settings in sentence_bert_config.json
cache             the Hugging Face cache: find a model in it, and list the files that a cached model still lacks
companions        models in two folders: a base and its adapter, a network and its backbone
download          download a model with huggingface_hub into its cache
files             read a model's files
folder_types      types of folders that another library marks; the kinds bring them
hub               find the folder of a model by its name
layout            `Layout`: where a folder's network, tokenizer and modules lie, read when it is asked for
missing_files     make the errors for a folder without weights or tokenizer
model_files       the names of the files that a model is read from
modules           the modules of a sentence-transformers folder
prompts           read the prompts in config_sentence_transformers.json: by name, and the default one
router            tables of query weights: the routes of a sentence-transformers Router beside the one for documents
transformer       read the settings of the Transformer module (sentence_bert_config.json)
"""
