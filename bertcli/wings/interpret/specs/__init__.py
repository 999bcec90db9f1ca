"""A spec for each view: its options, whose docstring is the help, and what it reads; the work is in compute/.

diff     two models, tensor by tensor and step by step
explain  occlusion: the words that speak for a result
heads    attention heads: where each looks, what is lost without it
lens     the logit lens: what each layer would predict
patch    activation patching between two texts
probe    linear probes of every layer
"""
