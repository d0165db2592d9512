"""Training of neural rankers by the library's gradients.

Each module imports only modules named before it: `config`, `sources`, `evaluation`, `parts`, `ranks`, `batches`,
`loss`, `network`, `learning_curve`, `model`, `checkpoint`, `trainer`, `results`, and `train`, the function
`plrank_fast.train`.

A step of `trainer` takes a batch of the data set (`batches`), scores it (`network`), asks for the gradient with respect
to the scores (`loss`), and hands it to the network, which goes along it.

Nothing is imported here, so that the command line starts without PyTorch and matplotlib.
"""
