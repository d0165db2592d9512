"""Training of neural rankers by the library's gradients.

Each module imports only modules named before it: `gradient_methods`, `config`, `sources`, `evaluation`, `ranks`,
`network`, `learning_curve`, `model`, `trainer`, `results`, and `train`, the function `plrank_fast.train`.

Nothing is imported here, so that the command line starts without PyTorch and matplotlib.
"""
