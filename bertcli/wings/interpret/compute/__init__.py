"""The work of the views: a file for each, with `measure` (passes to a result) and `draw` (a page).

attention      `heads --layer`: one head's attention weights
diff           `bertcli diff`: compare two models on the same text step by step, and find the first step that differs;
               **when two values differ**
explain        occlusion: a result without each word; **what stands in place of a word**
heads          what each head does and what is lost without it, as tables and a page
heads_figure   the pictures of attention weights in its figure
layer_states   every layer's states of labelled texts or words, pooled, as the items that a probe classifies; **which
               states a probe reads**
lens           the logit lens (nostalgebraist 2020)
logistic       logistic regression with an L2 penalty, which probes are: a fit for each C, each begun where the last
               ended; **when a fit has converged**
part_watcher   PartWatcher: read or overwrite the states, attention and feed-forward outputs of a pass while it runs
patch          activation patching: which layer and token carry the difference between the results of two texts
patch_result   its result: the table of effects, layers by tokens or heads
probe          linear probes: predict your labels from each layer's states (Alain and Bengio 2016, arXiv 1610.01644)
probe_figures  figures of a layer's probes: means over the folds, with 95 % intervals by Student's t over them
probe_folds    cross-validation of probes: folds of the items, C chosen on one fold, each fold predicted by the others
probe_labels   check labels before a probe is made of them; **how many labels are too few**
probe_page     the page of `bertcli probe`
probe_result   the result of `probe` as a record, a table, a classifier's file
target         the result that explain, heads --ablate and patch measure; **which number is measured**
"""
