"""The compiled core, private and below every Python module of the package, and the map of all modules.

A call, with the module of each step, and what follows where (docs/how_a_batch_runs.md goes through the stages)::

    gradients.pl_rank_3                the public function passes its arguments on
    _estimates.sampled                 one plain query: sampled.estimate_plain; others after validation
    |- validation.batch                copies and checks: arguments.plain_batch if all are plain arrays
    '- sampled.estimate                takes the batch, draws the key
       '- batch.run_batch              rounds of a twentieth of a second; looks for Ctrl-C in between
          |- teams.run_loop            prange over the queries of a round
          |  '- sampled.estimate_query    one query: weights, then in turns
          |     |- samplers.draw_rows     sixteen rankings from the stream of their block
          |     '- pl_rank_groups         adds them to the gradient: kernels/gradients/pl_rank_groups.c
          '- sampled.estimate_long_query  a query that fills a round
             |- samplers.draw_long        prange over its blocks
             '- teams.run_in_team         the same steps; the seats of a prange take passes of their loops

Each module imports only modules listed above it; ``...`` stands for estimators, or losses, none of which
imports another::

    _core/runtime       runs a call           scalar_types  buffers  simd  threads  teams  layout  queries  batch
                                              magnitudes  arguments  compensated
    _core/random        streams, selection    key  stream  selection
    _core/ranking       weights, rankings     weights  remaining  rankings  metrics
    _core/sampling      samplers              noise  introselect  samplers
    _core/gradients     estimators, exact     estimator  pl_rank  hessian  ...  scale  sampled  exact  curvature
    _core/losses        losses of labels      loss  ...  losses
    _core/strengths     orders of items       battles  orders  clusters
    _core/data          features and text     normalization  letor_lines
    .                   the C interface       cython_plrank
    _adapters           calls from XLA        xla_calls
    ------------------  compiled above, thin Python below
    .                   the build             build
                        private helpers       _shared
                        arguments, errors     validation
                        calls of estimates    _estimates
    .                   public functions      rank_weights  offsets  sampling  metrics  bucket_order  gradients
                                              policy_gradients  second_derivatives  probabilities
                                              exposure_targets  losses  distribution  strengths  rewards
                                              off_policy  stochastic_rank
                        estimators by name    _methods
                                              fairness  value_and_gradient  named_metrics  chunks  embedding
                        in NumPy              reference
                        other libraries       _adapters  torch  sentence_transformers  jax  sklearn  interchange
                                              boosting  lightgbm  xgboost  catboost  dask  spark  trl  compat
                        data, training        data  training
                        measurements          benchmarks
                        command line          commands  __main__

A module that runs batches has the sections "Per query", "Batch" and "Entry points", in this order. The C sources of the
SIMD loops are in ``kernels``, in folders of the same names.

The loops that take the time are recurrences over ranks in lanes of items or nodes: C with vector extensions says so,
and each SIMD level is a translation unit that is chosen at import.
"""
