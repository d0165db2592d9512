"""Reproduction of the experiments of the SIGIR 2022 paper, with its figures beside ours.

Each module imports only modules named before it: `published`, `results`, `workloads`, `methods`, `cost`, `learning`,
`summary`, `findings`, `tables`, `figures`, `report`, `experiment`.

Nothing is imported here, so that the command line starts without PyTorch and matplotlib.
"""
