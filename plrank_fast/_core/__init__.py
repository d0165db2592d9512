"""The compiled core, private and below every Python module of the package, and the map of all modules.

A call, from top to bottom:

- the public function passes its arguments to the ``def`` of a compiled module
- ``arguments`` copies and checks them; what is not plain goes to ``validation``
- ``batch`` runs rounds of a twentieth of a second, with a look for Ctrl-C in between

  - ``teams`` has a ``prange`` over the queries of a round: query function, kernel
  - a long query has a function of its own: a ``prange`` over its parts, or over the seats of a team, whose threads take
    passes of the query's loops as tasks

Each module imports only modules listed above it; ``...`` stands for estimators, none of which imports another::

    _core/runtime       runs a call           scalar_types  buffers  simd  threads  teams  layout  queries  batch
                                              magnitudes  arguments  compensated
    _core/random        streams, selection    key  stream  selection
    _core/ranking       weights, rankings     weights  remaining  rankings  metrics
    _core/sampling      samplers              noise  introselect  samplers
    _core/gradients     estimators, exact     estimator  pl_rank  hessian  ...  sampled  exact  curvature
    _core/losses        losses of labels      loss  likelihood  bucket_order  pairs  ranks  losses
    .                   the C interface       cython_plrank
    _adapters           calls from XLA        xla_calls
    ------------------  compiled above, thin Python below
    .                   the build             build
                        private helpers       _shared
                        arguments, errors     validation
    .                   public functions      rank_weights  offsets  sampling  metrics  bucket_order  gradients
                                              policy_gradients  second_derivatives  probabilities
                                              exposure_targets  losses  distribution  strengths  rewards
                                              off_policy  stochastic_rank
                        estimators by name    _methods
                                              fairness  value_and_gradient  named_metrics  chunks  embedding
                        in NumPy              reference
                        other libraries       _adapters  torch  jax  sklearn  interchange  boosting  lightgbm  xgboost
                                              catboost  dask  compat
                        data, training        data  training
                        measurements          benchmarks
                        command line          commands  __main__

Every module of batches has its query function first, then its long query, then its entry points. The C sources of the
SIMD loops are in ``kernels``, in folders of the same names.

The loops that take the time are recurrences over ranks in lanes of items or nodes: C with vector extensions says so,
and each SIMD level is a translation unit that is chosen at import.
"""
