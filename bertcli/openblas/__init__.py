"""Products by OpenBLAS: identical results whatever is computed together, and fast for weights that are used often.

A product is weight [outputs, inputs] · columns [inputs, tokens]. OpenBLAS has a *kernel* for each kind of processor. It
copies both matrices into *panels*, the order in which the kernel reads them; the kernel takes a panel of outputs and a
*tile* of columns at a time, and sums over the inputs in *portions*. The order in which a number is summed may depend on
how many columns there are. A text's vector must not depend on that, so

    enlarged   makes small products larger by adding columns of zeros (the AVX-512 kernel)
    guarded    puts columns of zeros on either side of the columns that are multiplied (the AVX2 kernel)

and since copying a weight takes as long as multiplying it by 16 columns,

    kept       decides which weights are used often enough to keep their panels, and keeps them
    panels     multiplies by weights in panels
    schedules  says with which arguments, and in which order, OpenBLAS's routines are called for that
    routines   calls them
    layouts    holds the sizes of portion, tile and panel for each kernel
"""
