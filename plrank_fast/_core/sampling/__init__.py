"""Samplers of Plackett-Luce rankings, and the rule that picks one."""
