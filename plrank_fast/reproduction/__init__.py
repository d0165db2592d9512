"""Reproduction of the experiments of the SIGIR 2022 paper, with its figures beside ours.

==================== ==========================================================
`published`          the figures that the paper prints
`results`            the measurements: parts, rounds, cells, and their file
`methods`            the gradients that are compared
`workloads`          batches with the list lengths of the public sets
`cost`               Table 2 and Figure 1: the cost of an epoch
`learning`           Figure 2: NDCG, or disparity, against training seconds
`summary`            arrays of the cells, and intervals over rounds and seeds
`findings`           the statements of the paper, judged by the figures
`tables`             the figures as CSV and HTML
`figures`            the pictures and their captions
`report`             the HTML page
`experiment`         the parts in turn, within a budget of time
==================== ==========================================================

Nothing is imported here, so that the command line starts without PyTorch and matplotlib.
"""
