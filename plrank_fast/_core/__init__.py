"""The compiled core, private and below every Python module of the package, and the map of all modules.

Each module imports only modules listed above it::

    _core/runtime       runs a call           scalar_types  buffers  simd  threads  teams  layout  queries  batch
                                              magnitudes  arguments  calls  compensated
    _core/random        streams, selection    key  stream  selection
    _core/ranking       weights, rankings     weights  remaining  rankings  metrics
    _core/sampling      samplers              introselect  samplers
    _core/gradients     estimators, exact     estimator  pl_rank  pl_rank_groups  hessian  conditional
                                              policy_gradient  exposure  stochastic_rank  sampled  exact
                                              curvature
    _core/losses        losses of labels      loss  likelihood  bucket_order  pairs  ranks  losses
    .                   the C interface       cython_plrank
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
                        measurements          benchmarks  reproduction
                        command line          commands  __main__

Every compiled module has the same sections, from top to bottom: per item, per query, batch, entry point. The C sources
of the SIMD loops are in ``kernels``, in folders of the same names.

Where one expects typed Cython with ``prange`` over memoryviews, there is C below one driver. The loops that take the
time are recurrences over ranks in lanes of items or nodes: C with vector extensions says so, and each SIMD level is a
translation unit that is chosen at import. ``batch`` and ``teams`` are what ``prange`` would be in each module, with
rounds for interrupts, teams of the size that pays and parts of long queries.
"""
