"""The command ``evaluate``."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from plrank_fast._shared.files import refuse_overwriting, write_atomically
from plrank_fast.commands.options import add_parameters, add_reading, some_path
from plrank_fast.named_metrics import METRICS, checked_ties
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.model import MODEL, load_model, model_file
from plrank_fast.validation import RankTies, count, threads

EQUAL_SCORES = {"index": "in the order of the file", "average": "the mean over all their orders"}


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
    of_training = "the metric beside NDCG (default: as in the training)"
    parser.add_argument("--metric", choices=METRICS, help=of_training)
    add_parameters(parser, TrainingConfig, ("gain", "cutoff", "empty"), "as in the training")
    parser.add_argument(
        "--ties", choices=get_args(RankTies), default="index",
        help="equal scores: in the order of the file, or the mean over all their orders (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--threads", dest="n_threads", type=int, default=-1, metavar="N", help="threads (default: all)")
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
    if arguments.scores:
        refuse_overwriting("scores", arguments.scores, [arguments.model, *arguments.file])

    from plrank_fast.training.evaluation import evaluate_scores
    from plrank_fast.training.results import empty_queries, metrics_table, queries_without_relevant
    from plrank_fast.training.sources import load_files

    model = load_model(arguments.model)
    config = model.config
    cutoff, metric = arguments.cutoff or config.cutoff, arguments.metric or config.metric
    ties = checked_ties(arguments.ties, metric)
    data = load_files(
        arguments.file, normalize=config.normalize_features, string_qids=arguments.string_qids, cache=arguments.cache,
        known_features=model.n_features,
    )  # fmt: skip
    if data.n_features != model.n_features:
        fewer = f": a file of its data that leaves out zeros must name feature {model.n_features} once, as "
        raise ValueError(
            f"file {data.name} has {data.n_features} features, and the model was trained with {model.n_features}"
            + (f"{fewer}{model.n_features}:0" if data.n_features < model.n_features else "")
        )
    scores = model.predict(data)
    empty = config.empty if arguments.empty is None else arguments.empty
    metrics = evaluate_scores(
        scores, data.labels, data.offsets, cutoff=cutoff, n_threads=arguments.n_threads, empty=empty,
        metric=metric, gain=arguments.gain or config.gain, max_label=config.max_label, ties=ties,
    )  # fmt: skip
    print(f"{data.n_queries} queries, {data.n_docs} documents")
    print(metrics_table([(data.name, f"epoch {model.epoch}", metrics)], config, cutoff))
    print(empty_queries(empty, [(data.name, queries_without_relevant(data), data.n_queries)]))
    print(f"equal scores: {EQUAL_SCORES[ties]}")
    if arguments.scores:
        write_atomically(arguments.scores, "".join(f"{score!r}\n" for score in scores.tolist()).encode())
    return 0
