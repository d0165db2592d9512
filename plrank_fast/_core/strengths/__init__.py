"""Orders of items: battles, who comes before whom, and slopes of clusters."""
