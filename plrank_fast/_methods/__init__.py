"""Private: the estimators of the gradient by name, and the model of costs that chooses one."""
