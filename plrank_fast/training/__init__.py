"""Training of neural rankers by the library's gradients, the measurements of its cost, and the commands.

Each module imports only modules named before it. The function `plrank_fast.train` and the command ``train`` have
`gradient_methods`, `config`, `sources`, `evaluation`, `ranks`, `network`, `learning_curve`, `model`, `trainer`,
`results` and `train`. The cost of gradients is measured by `epoch_cost`, and that of the documented speeds by `claims`.
The experiments of the SIGIR 2022 paper begin with ``paper_``, the commands of ``python -m plrank_fast`` with
``command_``.

Nothing is imported here, so that the command line starts without PyTorch and matplotlib.
"""
