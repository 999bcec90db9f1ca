"""Make NumPy fast: kernels, packed batches, threads. A pass is traced in `tracing/`; ONNX Runtime is in `wings/onnx/`.

kernels         softmax, norms, activations, products
product_rules   how products are divided on each processor: in strips or whole, by bertcli or by OpenBLAS; **from how
                many tokens**
packing         batches without padding, and attention in blocks that fit the cache; **how large a micro-batch and a
                block of attention may be**
padded_batch    batches as users pass them, checked and packed
threads         how many there are, and how they share a pass; **how many are used when the machine, a container or the
                user limits them**
pauses          where a server looks whether a long computation is still wanted
blas            OpenBLAS: which of its kernels, how many of its threads; **which kernel is taken**
memory          freed memory, kept from batch to batch
positions       what the other families compute from positions: relative positions, windows, rotations, and the position
                ids that RoBERTa counts
rope            the inverse frequencies of rotary positions
sliding_window  attention to tokens near by
experts         mixture of experts

A pass is limited by the rate of OpenBLAS's products: at 8 × 128 tokens of BERT-base they are 88 % of the time and run
at the rate that large products alone reach. What is done about the rest, and what it gains:

* No padding: sentences lie end to end.
* Only what is asked for: in the last layer the rows that a head reads, in the vocabulary's product the masked tokens.
* Activations are feature-major, so that products read stored weights and each other's results in order; weights are
  views of the mapped file.
* Few tokens: OpenBLAS copies a weight before it multiplies, which takes as long as the multiplying at 16 tokens. With
  its AVX-512 kernel, pieces of up to a million multiplications are read in place (`kernels`): 16 tokens take 41 ms
  of CPU time, 66 with the AVX2 kernel, which has no such way. On Intel this ends at 32 tokens (`product_rules`). With
  the AVX2 kernel up to 6 tokens are multiplied one by one.
* Micro-batches, one a core, keep activations in the cache: a run over texts has them of at most 1,536 tokens
  (`BATCH_TOKENS` in tasks/running/batches.py), one batch of `Model.forward` is cut into parts of at most 800
  (`MOST_TOKENS` in packing.py). A single text's products are shared by their outputs, so that activations are computed
  where the product was.
* Attention in blocks of a quarter of a million scores; a local layer computes its band (`sliding_window`): 2,048
  tokens of ModernBERT-base take 0.6 of the CPU time of transformers with sdpa attention and 0.3 of its eager one.
* DeBERTa's relative positions are multiplied only as far as the tokens of a batch stand apart (`positions`).

The promise: whatever a text is batched with, on however many threads, its vector changes by at most 2e-6 of its largest
number (1.5e-6 was measured, on all-MiniLM-L6-v2); this is float32's rounding in products of different sizes.
The same command on the same machine gives the same bytes.

Times above are CPU time of one core of an AMD EPYC of 2022 (Zen 4), best of several runs in turn. On this processor
OpenBLAS's AVX-512 and AVX2 kernels reach the same rate, 102 and 108 GFLOP/s; on its successor (Zen 5) the former
reaches twice the rate of the latter. `tests/bench` measures all this beside other programs and another checkout.
"""
