"""Training of neural rankers by the library's gradients.

Each module imports only modules named before it: `gradient_methods`, `config`, `sources`, `evaluation`, `ranks`,
`network`, `learning_curve`, `saved_model`, `loop`, `report`, `training`.

Nothing is imported here, so that the command line starts without PyTorch.
"""
