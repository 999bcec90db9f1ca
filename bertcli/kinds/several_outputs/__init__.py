"""A model of several outputs (bge-m3): a text's dense vector, the weights of its tokens, and a vector for each of them.

kind         `SeveralOutputs`: what it is for, and the layers that give the outputs; **which tokens
             have no weight**
folder_type  the files of these layers, beside the network's
"""
