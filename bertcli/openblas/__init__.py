"""Products by OpenBLAS: exact whatever is computed together, and fast for weights that are used often.

A product is weight [outputs, inputs] · columns [inputs, tokens]. OpenBLAS has a *kernel* for each kind of processor. It
copies both matrices into *panels*, the order in which the kernel reads them; the kernel takes a panel of outputs and a
*tile* of columns at a time, and adds up the inputs in *portions*. In which order a number is added up may depend on how
many columns there are. A text's vector must not depend on that, so

    enlarged   makes small products larger, by columns of zeros (the AVX-512 kernel)
    guarded    puts columns of zeros to either side of what is multiplied (the AVX2 kernel)

and since copying a weight takes as long as multiplying it with 16 columns,

    kept       says which weights are used so often that their panels are kept, and keeps them
    panels     multiplies with them
    schedules  is what OpenBLAS's routines are called with for that, and in which order
    routines   calls them
    layouts    has the sizes of portion, tile and panel, for each kernel
"""
