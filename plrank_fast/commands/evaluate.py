"""The command ``evaluate``."""

from __future__ import annotations

import argparse
from typing import Any

from plrank_fast._shared.files import refuse_overwriting, write_atomically
from plrank_fast.commands.options import EMPTY, add_reading, caches, parameters_of, some_path
from plrank_fast.named_metrics import METRICS
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.model import MODEL, load_model, model_file
from plrank_fast.validation import count, threads


def add_evaluate(commands: Any) -> None:
    """Add the command ``evaluate`` to the subparsers of the command line."""
    parser = commands.add_parser(
        "evaluate",
        help="score LETOR files with a trained network",
        description="Score LETOR files with a trained network and compute NDCG.",
        allow_abbrev=False,
    )
    parser.add_argument("model", type=some_path, metavar="MODEL", help=f"the folder of a run, or the {MODEL} in it")
    parser.add_argument("file", nargs="+", type=some_path, metavar="FILE", help="LETOR files, plain or gzipped")
    add_reading(parser)
    parser.add_argument("--cutoff", type=int, metavar="K", help="compute NDCG@K (default: the cutoff of the training)")
    of_training = "the metric beside NDCG (default: that of the training)"
    parser.add_argument("--metric", choices=METRICS, help=of_training)
    empty = f"{parameters_of(TrainingConfig).get('empty')} The default is that of the training."
    parser.add_argument("--empty", help=empty, **EMPTY)
    parser.add_argument("--threads", dest="n_threads", type=int, default=-1, metavar="N", help="threads (default: all)")
    parser.add_argument("--json", type=some_path, metavar="FILE", help="write the metrics to this file")
    parser.add_argument(
        "--scores", type=some_path, metavar="FILE", help="write one score per document to this file, in their order"
    )
    parser.set_defaults(run=evaluate, parser=parser)


def evaluate(arguments: argparse.Namespace) -> int:
    """Run the command ``evaluate``."""
    if arguments.cutoff is not None:
        count(arguments.cutoff, "cutoff", 1)
    threads(arguments.n_threads)
    arguments.model = model_file(arguments.model)
    refuse_overwriting(
        [arguments.model, *arguments.file],
        cache=caches(arguments.cache),
        json=[arguments.json] if arguments.json else [],
        scores=[arguments.scores] if arguments.scores else [],
    )

    from plrank_fast.training.evaluation import evaluate_scores
    from plrank_fast.training.results import empty_queries, metrics_table, queries_without_relevant, write_json
    from plrank_fast.training.sources import load_files

    model = load_model(arguments.model)
    config = model.config
    cutoff = arguments.cutoff or config.cutoff
    data = load_files(
        arguments.file, normalize=config.normalize_features, string_qids=arguments.string_qids, cache=arguments.cache
    )
    if data.n_features != model.n_features:
        raise ValueError(
            f"file {data.name} has {data.n_features} features, and the model was trained with {model.n_features}: a "
            f"file of its data that leaves out zeros must name feature {model.n_features} once, as "
            f"{model.n_features}:0"
        )
    scores = model.predict(data.features)
    empty = config.empty if arguments.empty is None else arguments.empty
    metrics = evaluate_scores(
        scores, data.labels, data.offsets, cutoff=cutoff, n_threads=arguments.n_threads, empty=empty,
        metric=arguments.metric or config.metric, max_label=config.max_label,
    )  # fmt: skip
    print(f"{data.n_queries} queries, {data.n_docs} documents")
    print(metrics_table([(data.name, f"epoch {model.epoch}", metrics)], config, cutoff))
    without_relevant = queries_without_relevant(data)
    print(empty_queries(empty, [(data.name, without_relevant, data.n_queries)]))
    if arguments.json:
        content = {"model": arguments.model, "files": arguments.file, "cutoff": cutoff, "metrics": metrics}
        content |= {"empty": empty, "without_relevant": without_relevant}
        write_json(arguments.json, {**content, "queries": data.n_queries, "documents": data.n_docs})
    if arguments.scores:
        write_atomically(arguments.scores, "".join(f"{score!r}\n" for score in scores.tolist()).encode())
    return 0
