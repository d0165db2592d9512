"""The ruler of the library's speed, `epoch_cost`, and the measurements of the documented speeds, `claims`."""
