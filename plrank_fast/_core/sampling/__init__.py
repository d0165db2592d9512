"""Samplers of Plackett-Luce rankings, and the rule that chooses one."""
