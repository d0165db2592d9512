"""Training of neural rankers by the library's gradients.

====================== ==========================================================
`gradient_methods`     the estimators, by name
`config`               the settings that determine a result
`sources`              the sources of the data
`evaluation`           NDCG, deterministic and expected, in both normalisations
`network`              the scoring network, in PyTorch
`ranks`                several processes that train one network
`loop`                 the training loop and its checkpoints
`saved_model`          the trained network on disk
`report`, `learning_curve`   tables, results file and picture
====================== ==========================================================

Nothing is imported here, so that the command line starts without PyTorch.
"""
