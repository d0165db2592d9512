"""The experiments of the SIGIR 2022 paper once more, with its figures beside ours.

==================== ==========================================================
`published`          the figures that the paper prints
`cells`              what is measured: parts, rounds, cells
`results_file`       one line for each measured cell; a killed run continues
`methods`            the gradients that are compared
`workloads`          batches with the list lengths of the public sets
`cost`               Table 2 and Figure 1: what an epoch costs
`learning`           Figure 2: NDCG against training seconds
`disparity`          the experiment of the SIGIR 2021 paper
`findings`           which statements of the paper the figures bear out
`tables`             the figures as CSV and HTML
`figures`            the pictures
`report`             one HTML page of it all
`experiment`         the parts in turn, within a budget of time
==================== ==========================================================

Nothing is imported here, so that the command line starts without PyTorch and matplotlib.
"""
