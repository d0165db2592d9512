"""The machinery of a call: scalar types, SIMD level, threads, workspaces, batches of queries and their driver."""
