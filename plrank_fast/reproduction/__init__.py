"""The experiments of the SIGIR 2022 paper.

Each module imports only modules named before it: `published` has the paper's figures, `results` the file of measured
cells, `cost` and `learning` measure them, `summary` gathers them, `tables`, `findings` and `figures` show them,
`report` is the page, and `experiment` runs it all.
"""
