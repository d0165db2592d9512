"""The experiments of the SIGIR 2022 paper.

Each module imports only modules named before it: `published` has the paper's figures, `results` the file of measured
cells, `cost` and `learning` measure them, `experiment` does so within a budget of time, `summary` gathers them,
`findings` and `figures` show them, and `report` is the page.
"""
