"""Training: what is learned, and that interruptions, thread counts and evaluations change nothing of it."""

import copy
import functools
import json
import mmap
import operator
import os
import re
from dataclasses import asdict, replace
from itertools import permutations
from unittest.mock import Mock

import numpy as np
import pytest

import plrank_fast as plr
from plrank_fast import fairness
from plrank_fast._shared.archive import read_archive, write_archive
from plrank_fast.data import RankingData, normalize_queries
from plrank_fast.named_metrics import LabelledMetric
from plrank_fast.training import checkpoint, trainer
from plrank_fast.training import learning_curve as curve_module
from plrank_fast.training import loss as loss_module
from plrank_fast.training import model as model_module
from plrank_fast.training.checkpoint import CHECKPOINT
from plrank_fast.training.config import LOSSES, TrainingConfig, with_tuples
from plrank_fast.training.evaluation import evaluate_scores
from plrank_fast.training.loss import WITH_CUTOFF, WITH_TIES, gradient, resolve_method
from plrank_fast.training.model import load_model
from plrank_fast.training.results import (
    empty_queries,
    queries_without_relevant,
    results_table,
    settings_line,
    summarize,
)
from plrank_fast.training.sources import Source
from plrank_fast.training.trainer import TrainingRun

SOURCE = Source(profile="yahoo", queries=80, features=12)
SETTINGS = dict(method="pl_rank_3", samples=10, batch_queries=16)


@pytest.fixture(scope="module")
def splits():
    return SOURCE.load(normalize=True)


@pytest.fixture
def new_run(tmp_path, splits):
    """`new_run(setting=..., source=...)` is a run of these settings, of one epoch on 80 queries by default."""

    def make(config=None, *, source=SOURCE, data=splits, folder=tmp_path, **options):
        limits = {"epochs", "minutes", "n_threads", "checkpoint_seconds"}
        limits = {name: options.pop(name) for name in limits & options.keys()}
        data = data if source is SOURCE else source.load(normalize=True)
        config = config or TrainingConfig.from_preset(**{**SETTINGS, **options})
        return TrainingRun(config, source, data, folder, **{"epochs": 1, **limits})

    return make


def stop_after(batches):
    """A stop request that comes after so many batches."""
    asked = iter(range(10**9))
    return lambda: next(asked) >= batches


def outcome(run):
    """All that must not depend on how a run came about: weights, and metrics of every epoch."""
    weights = {**run.network.weights(), **{f"best {name}": array for name, array in run.best_weights.items()}}
    return {name: array.tobytes() for name, array in weights.items()}, run.progress.history, run.progress.best_epoch


# --- evaluation


@pytest.mark.parametrize(("empty", "value"), [(0.0, 2 / 4), (1.0, 4 / 4), ("drop", 2 / 2)])
def test_queries_without_relevant_documents(empty, value):
    """Two queries at NDCG 1, one without relevant documents and one without any. Mutants: dropped from the sum but not
    from the count; only one of the two kinds; the expected metric forgotten; the share of documents counted."""
    labels, offsets = np.array([1.0, 0, 0, 0, 0, 2, 0]), np.array([0, 2, 5, 5, 7])
    metrics = evaluate_scores(50.0 * labels, labels, offsets, cutoff=2, empty=empty)
    assert metrics["ndcg_query"] == pytest.approx(value, rel=1e-12)
    assert metrics["expected_ndcg_query"] == pytest.approx(value, rel=1e-6)
    assert metrics["ndcg_dataset"] == pytest.approx(1.0, rel=1e-12)
    assert queries_without_relevant(RankingData(np.zeros((7, 1)), labels, offsets)) == 2
    words = "left out" if empty == "drop" else f"counted as {empty:g}"
    assert empty_queries(empty, [("few", 2, 4)]) == (
        f"NDCG: mean over queries; those without relevant documents are {words}: 2 of 4 (few)"
    )


@pytest.mark.parametrize("metric", ["dcg", "precision", "recall"])
def test_equal_scores(metric):
    """The mean over all 24 orders of the documents, each of which the other value has. Mutants: either metric by the
    order of the file; the expected metric changed."""
    labels, offsets = np.array([0.0, 3.0, 1.0, 2.0]), np.array([0, 4])

    def of(labels, ties):
        return evaluate_scores(np.zeros(4), labels, offsets, cutoff=2, metric=metric, ties=ties)

    orders = [of(np.array(each), "index") for each in permutations(labels)]
    averaged = of(labels, "average")
    for name in ("ndcg_query", "ndcg_dataset", metric):
        assert averaged[name] == pytest.approx(np.mean([values[name] for values in orders]), rel=1e-12)
        assert np.ptp([values[name] for values in orders]) > 0.1
    assert averaged["expected_ndcg_query"] == of(labels, "index")["expected_ndcg_query"]


@pytest.mark.parametrize(
    ("epochs", "objective"), [(0, "query"), *((1, name) for name in ("query", "dataset", "dcg", "disparity"))]
)
def test_shown_is_the_mean_over_queries(new_run, epochs, objective):
    """The table has the NDCG of the papers beside it, by a name of its own, where it is optimised.

    Mutants: the objective's normalisation shown; always the data set's."""
    run = new_run(objective=objective, epochs=epochs)
    run.train()
    results = summarize(run, "epochs")
    title, row = [line.split() for line in results_table(results, run.config).splitlines()[2:4]]
    metrics = results["metrics"]["vali"]["untrained"]
    of_papers = ["ndcg_dataset", "expected_ndcg_dataset"] if objective in ("dataset", "dcg") else []
    names = ["ndcg_query", "expected_ndcg_query", *of_papers, *(["disparity"] if objective == "disparity" else [])]
    assert row[2:] == [format(metrics[name], ".4g" if name == "disparity" else ".4f") for name in names]
    assert (" ".join(title) == "NDCG@10 expected") == (objective == "query")
    assert ("dataset NDCG@10" in " ".join(title)) == bool(of_papers)


def test_cutoff_beyond_the_longest_list(new_run, splits):
    """It costs no more than that list: 2**31 ranks would take a minute and 16 GB. Mutants: the cutoff not clamped in
    evaluation, or in training."""
    data, runs = splits["vali"], []
    scores = np.random.default_rng(0).standard_normal(data.n_docs)
    for cutoff in (max(int(part.list_lengths.max()) for part in splits.values()), 2**31):
        run = new_run(method="lambda_rank", cutoff=cutoff)
        run.train()
        runs.append((evaluate_scores(scores, data.labels, data.offsets, cutoff=cutoff), run.progress.history))
    assert runs[0] == runs[1]


# --- settings


def test_dynamic_samples():
    """10 at the start, 90 more every 40 epochs, at most 1000. Mutants: steps of 40 epochs; no limit; start left out."""
    config = TrainingConfig(method="pl_rank_3", samples="dynamic")
    assert [config.samples_in_step(epoch, 0, 300) for epoch in (0, 20, 40, 80, 439, 440, 10_000)] == [
        *(10, 55, 100, 190, 997, 1000, 1000)
    ]
    assert TrainingConfig(method="pl_rank_3", samples=7).samples_in_step(400, 1, 300) == 7


@pytest.mark.parametrize("n_queries", [100, 256, 1000, 19_944])
def test_samples_of_the_published_code(n_queries):
    """run.py counts 10 + 90 per 40 epochs after every step, up to 1000; 200 times its root when an epoch begins.

    Mutants: by epochs; rounded down; the first step as the others; no limit.
    """
    config = TrainingConfig.from_preset("sigir22")
    seen, count = 0, None
    for epoch in range(60 if n_queries < 10**4 else 3):
        count = max(1, int(np.ceil(200 * np.sqrt(epoch))))
        for batch in range(-(-n_queries // 256)):
            assert config.samples_in_step(epoch, batch, n_queries) == count, (epoch, batch)
            seen += min(256, n_queries - 256 * batch)
            count = min(int(np.round(10.0 + seen * 90.0 / (n_queries * 40.0))), 1000)
    assert [config.samples_in_step(epoch, 1, 300) for epoch in (440, 10_000)] == [1000, 1000]


def test_preset_of_the_published_code(new_run, splits):
    """Keras's Dense layers and SGD on raw DCG. Mutants: PyTorch's initialisation; biases not 0; bounds of the inputs
    alone; DCG over an ideal."""
    config = TrainingConfig.from_preset("sigir22")
    assert (config.method, config.cutoff, config.hidden, config.batch_queries) == ("pl_rank_3", 5, (32, 32), 256)
    assert (config.optimizer, config.learning_rate) == ("sgd", 0.001)
    run = new_run(config)
    before = run.network.weights()
    for layer, (inputs, outputs) in zip((0, 2, 4), ((12, 32), (32, 32), (32, 1)), strict=True):
        weights, bound = before[f"{layer}.weight"], np.sqrt(6 / (inputs + outputs))
        assert weights.shape == (outputs, inputs)
        assert (before[f"{layer}.bias"] == 0).all()
        assert 0.85 * bound < np.abs(weights).max() <= bound
        assert weights.std() == pytest.approx(bound / np.sqrt(3), rel=5 / np.sqrt(weights.size))
    train = splits["train"]
    assert np.array_equal(run.loss.metric.relevance, plr.gains(train.labels))


def test_presets_and_changes():
    """Mutants: changes lost; a preset's own values counted as changes; what the preset is not said."""
    config = TrainingConfig.from_preset("sigir22", cutoff=10, hidden=(8,))
    assert config.changed() == {"cutoff": 10, "hidden": (8,)}
    assert TrainingConfig.from_preset() == TrainingConfig()
    assert TrainingConfig(**with_tuples(json.loads(json.dumps(asdict(config))))) == config
    assert Source(**with_tuples(json.loads(json.dumps(asdict(SOURCE))))) == SOURCE
    line = settings_line(config)
    assert line.startswith(
        "settings: preset sigir22: the settings of the published code of the SIGIR 2022 paper (method pl_rank_3,"
    )
    assert line.endswith("; changed: cutoff 10, hidden (8,)")
    assert "changed" not in settings_line(TrainingConfig())


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "method": ["pl_rank_9"],
        "cutoff": [0, 2.5],
        "samples": [0, "many", True],
        "objective": ["mean"],
        "initialization": ["zeros"],
        "empty": ["skip", float("nan")],
        "hidden": [(32, 0), (2.5,)],
        "optimizer": ["lbfgs"],
        "learning_rate": [0.0, float("nan"), 1e38],  # the last overflows in a step of Adam
        "batch_queries": [0, 2.5],
        "seed": [-1, 2.5],
    }.items(),
)
def test_settings_are_checked(name, values):
    """Mutants: a check left out; 2.5 ranks let through."""
    for value in values:
        shown = re.escape(repr(value[-1] if name == "hidden" else value))
        with pytest.raises((TypeError, ValueError), match=f"^{name} must .*{shown}"):
            TrainingConfig(**{name: value})


NOUGHT = np.zeros(3)
IRRELEVANT = RankingData(np.eye(3, dtype=np.float32), NOUGHT, [0, 3], name="empty.txt")
OF_GAINS = RankingData(np.eye(3, dtype=np.float32), np.array([0.0, 300.0, 1.0]), [0, 3])
WITH_GAINS = {"train": OF_GAINS, "vali": OF_GAINS}
DIVERGING = TrainingConfig(learning_rate=1e38, optimizer="sgd", **SETTINGS)


@pytest.mark.parametrize(
    ("message", "call"),
    {
        "labels must include a relevant": lambda run: evaluate_scores(NOUGHT, NOUGHT, np.array([0, 3]), cutoff=2),
        "labels must be from 0 to 200, got 300.0 at index 1: with gain='exponential' these are": lambda run: run(
            data=WITH_GAINS
        ),
        "labels must be from 0": lambda run: evaluate_scores(NOUGHT, NOUGHT - 1, np.array([0, 3]), cutoff=2),
        "labels of empty.txt must include": lambda run: run(data={"train": IRRELEVANT, "vali": IRRELEVANT}),
        "objective disparity needs a method": lambda run: TrainingConfig(method="lambda_rank", objective="disparity"),
        "preset must be one of 'default', 'sigir22', got 'paper'": lambda run: TrainingConfig.from_preset("paper"),
        "train cannot be combined": lambda run: Source(train=("a",), profile="yahoo"),
        "queries cannot be combined": lambda run: Source(train=("a",), vali=("b",), queries=3),
        "queries must be at least 1": lambda run: Source(profile="yahoo", queries=0),
        "features must be at least 1": lambda run: Source(profile="yahoo", features=0),
        "data_seed must be at least 0": lambda run: Source(profile="yahoo", data_seed=-1),
        "epochs or minutes must be given": lambda run: run(epochs=None),
        "minutes must be positive and finite, got 0": lambda run: run(minutes=0),
        "minutes must be positive and finite, got nan": lambda run: run(minutes=float("nan")),
        "learning_rate 1e+38 made training diverge in epoch 1": lambda run: run(DIVERGING, epochs=3).train(),
    }.items(),
)
def test_refusals(message, call, new_run):
    """Mutant of each: the check left out, after which 0/0 is a metric, scores are NaN, or a run has no end."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call(new_run)


# --- data


def test_files_get_the_same_columns(tmp_path):
    """Mutants: columns of the first file only; several files of a split reduced to one."""
    for name, content in {"a": "1 qid:1 1:1\n0 qid:1 2:1\n", "b": "1 qid:1 3:1\n", "c": "1 qid:4 4:2\n"}.items():
        (tmp_path / name).write_text(content)
    a, b, c = (str(tmp_path / name) for name in "abc")
    loaded = Source(train=(a, b), vali=(a,), test=(c,)).load(normalize=False)
    assert loaded["train"].features.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert loaded["train"].offsets.tolist() == [0, 2, 3]
    assert loaded["vali"].features.shape == (2, 4)
    assert loaded["test"].features.tolist() == [[0, 0, 0, 2]]
    assert list(Source(train=(a,), vali=(b,)).load(normalize=True)) == ["train", "vali"]


def memory_of(array):
    """Return the object that holds the numbers of an array."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return getattr(array, "obj", array)


def test_training_reads_from_the_cache(tmp_path):
    """Features that come from a cache are mapped, not in memory: normalised, of several files, for all splits.

    Mutants: normalised after they were mapped, which copies all of them; each file mapped and then put after one
    another; the cache of normalised features taken for others.
    """
    rng = np.random.default_rng(0)
    for qid, name in enumerate("abc"):
        (tmp_path / name).write_text(
            "".join(f"{d} qid:{qid} 1:{x:.3f} 2:{x * x:.3f}\n" for d, x in enumerate(rng.random(4)))
        )
    a, b, c = (str(tmp_path / name) for name in "abc")
    source, cache = Source(train=(a, b), vali=(c,)), str(tmp_path / "cache")
    for normalize in (True, False):
        plain = source.load(normalize=normalize)
        source.load(normalize=normalize, cache=cache)
        mapped = source.load(normalize=normalize, cache=cache)
        assert mapped["train"].name == plain["train"].name
        for name, data in mapped.items():
            assert data.fingerprint() == plain[name].fingerprint()
            assert isinstance(memory_of(data.features), mmap.mmap), name
            assert not isinstance(memory_of(plain[name].features), mmap.mmap)


# --- learning


def test_auto_takes_what_the_cost_model_chooses(new_run, monkeypatch):
    """One sample where sampling is chosen. Mutants: "auto" handed on as a name; the cutoff ignored; of documents that
    are scored by chunks, the last chunk lost."""
    assert resolve_method("auto", np.arange(0, 101, 20), 10) == "exact"
    assert resolve_method("auto", np.arange(0, 3001, 300), 100) == "cmc"
    assert resolve_method("pl_rank_1", np.arange(0, 3001, 300), 100) == "pl_rank_1"
    assert TrainingConfig(method="auto").samples_in_step(100, 0, 50) == 1
    monkeypatch.setattr("plrank_fast.training.network.DOCS_PER_CHUNK", 7)
    run = new_run(method="auto")
    run.train()
    assert run.loss.method == "exact"


@pytest.mark.parametrize("objective", ["dataset", "query"])
def test_relevance_makes_the_metric_ndcg(new_run, splits, objective):
    """The sum of the evaluated NDCG over the queries is maximised. Mutants: the other normalisation, in training or in
    evaluation; none; no gains; the cutoff off by one; the deterministic value given for the expected one, or that
    divided by the expected ideal."""
    run, train = new_run(objective=objective, cutoff=4), splits["train"]
    scores = np.random.default_rng(6).normal(size=train.n_docs)
    evaluated = evaluate_scores(scores, train.labels, train.offsets, cutoff=4)
    for name, metric, rtol in (("ndcg", plr.dcg, 1e-12), ("expected_ndcg", plr.expected_metric, 1e-5)):
        mean = metric(scores, run.loss.metric.relevance, plr.dcg_weights(4), offsets=train.offsets).mean()
        assert evaluated[f"{name}_{objective}"] == pytest.approx(mean, rel=rtol)


@pytest.mark.parametrize(
    ("profile", "queries", "preset", "epochs", "gain"),
    [("yahoo", 300, "default", 12, 0.1), ("mslr", 200, "default", 12, 0.1), ("mslr", 600, "sigir22", 40, 0.2)],
)
def test_profiles_are_learned(new_run, profile, queries, preset, epochs, gain):
    """On all metrics and held-out data, by about half of what was measured, and reported. Mutants: sign; the mean of
    a batch for its sum; documents paired with others' gradients; query order lost; SGD at 0.01 on DCG over its ideal
    as the defaults."""
    source, config = Source(profile=profile, queries=queries, features=50), TrainingConfig.from_preset(preset)
    run = new_run(config, source=source, epochs=epochs)
    assert run.train() == "epochs"
    results = summarize(run, "epochs")
    table = results_table(results, config)
    for split in ("vali", "test"):
        for metric in ("ndcg_query", "ndcg_dataset", "expected_ndcg_query", "expected_ndcg_dataset"):
            before, after = (results["metrics"][split][state][metric] for state in ("untrained", "trained"))
            assert after - before > gain, (split, metric)
        assert f"{results['metrics'][split]['trained']['ndcg_query']:.4f}" in table
    assert f"best epoch ({run.progress.best_epoch})" in table
    empty = "left out" if preset == "sigir22" else "counted as 0"
    assert f"NDCG: mean over queries; those without relevant documents are {empty}: " in table
    assert f"\nsettings: preset {preset}: " in table


# --- the same bits


@pytest.mark.parametrize(("optimizer", "method"), [("sgd", "pl_rank_3"), ("adam", "pl_rank_3"), ("sgd", "list_mle")])
def test_interruptions_change_nothing(tmp_path, new_run, optimizer, method):
    """Ended at a limit, stopped after 1, 4 and 8 batches, resumed on other thread counts, in the same process too: bit
    for bit the whole run, as each epoch of five batches that was stopped begins anew.

    Mutants: moments of Adam not restored, or those within the epoch saved; weights within the epoch saved, or gone on
    from; gradients that add up; random streams not keyed by epoch, or by batch; best weights not restored; ties of
    ListMLE broken by entropy; anything that depends on the final number of epochs.
    """
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    new = functools.partial(new_run, optimizer=optimizer, method=method, samples="dynamic")
    whole = new(folder=tmp_path / "whole", epochs=4, n_threads=1)
    assert whole.train() == "epochs"
    assert new(folder=tmp_path / "parts", n_threads=3).train() == "epochs"
    run = TrainingRun.resume(tmp_path / "parts", epochs=4, n_threads=2)
    for batches, threads in ((1, 7), (4, 1), (8, 2)):
        assert run.train(interrupted=stop_after(batches)) == "interrupted"
        run = TrainingRun.resume(tmp_path / "parts", n_threads=threads)
    assert run.train(interrupted=stop_after(3)) == "interrupted"
    assert (run.limits.epochs, run.progress.epoch, run.batch) == (4, 2, 3)
    summarize(run, "interrupted")  # gives the network other weights
    assert run.train() == "epochs"
    assert outcome(run) == outcome(whole)


def test_every_document_once_per_epoch(new_run, monkeypatch):
    """And every batch of every epoch has a random stream of its own. Mutants: the first batch again and again; the
    last, smaller batch left out; streams keyed by the epoch or the batch alone."""
    run = new_run(batch_queries=30, epochs=2)
    batches, streams = [], set()

    def record(method, scores, metric, *, offsets, rng, **_):
        batches.append((len(offsets) - 1, metric.relevance))
        streams.add(tuple(rng.generate_state(4)))
        return np.zeros(len(scores))

    monkeypatch.setattr(loss_module, "gradient", record)
    run.train()
    assert [queries for queries, _ in batches] == [30, 30, 20] * 2
    assert len(streams) == 6
    for epoch in (batches[:3], batches[3:]):
        assert np.array_equal(np.sort(np.concatenate([part for _, part in epoch])), np.sort(run.loss.metric.relevance))
    assert not np.array_equal(batches[0][1], batches[3][1])


def test_time_before_a_resume_counts(tmp_path, new_run):
    """Mutants: the clock begins anew; the time limit asked for only after an epoch."""
    run = new_run(minutes=1, epochs=None)
    run.train(interrupted=stop_after(2))
    assert run.epochs_done == 2 / 5
    run.progress.total_seconds = 60.0
    run.save()
    again = TrainingRun.resume(tmp_path)
    assert again.limits[:2] == (None, 1)
    assert again.train() == "minutes"
    assert again.epochs_done == 0
    assert TrainingRun.resume(tmp_path, epochs=1).train() == "epochs"


def test_changed_data_are_noticed(tmp_path, new_run):
    """Mutant: fingerprints not compared."""
    files = tmp_path / "train.txt", tmp_path / "vali.txt"
    for file in files:
        file.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    new_run(source=Source(train=(str(files[0]),), vali=(str(files[1]),))).train()
    TrainingRun.resume(tmp_path)
    files[1].write_text("1 qid:1 1:1\n0 qid:1 1:2\n0 qid:1 1:3\n")
    with pytest.raises(ValueError, match=r"^vali data are not those"):
        TrainingRun.resume(tmp_path)


# --- the times of checkpoints


def test_checkpoints_by_time(new_run, monkeypatch):
    """Each of an epoch's five gradients takes three seconds, and nothing else takes time. Mutants: after every epoch;
    inside an epoch; none at the end; the clock not set back."""
    saved, seconds, gradient = [], [], loss_module.gradient
    monkeypatch.setattr(trainer.time, "perf_counter", lambda: sum(seconds, 0.0))
    monkeypatch.setattr(loss_module, "gradient", lambda *given, **more: seconds.append(3.0) or gradient(*given, **more))
    monkeypatch.setattr(
        checkpoint, "write_archive", lambda path, kind, header, arrays: saved.append(header["progress"]["epoch"])
    )
    new_run(epochs=6, checkpoint_seconds=20).train()
    assert saved == [0, 2, 4, 6, 6]


# --- the model


def test_model_takes_the_features_of_its_training(new_run, monkeypatch):
    """Mutants: the number of features left to the product; raw features in [0, 1] scored as if they were normalised, or
    normalised over all queries at once, or for a network that takes them as they are; a query cut in two by a chunk; an
    index within a chunk; features of a data set by position."""
    monkeypatch.setattr(model_module, "DOCS_PER_CHUNK", 50)
    source = Source(profile="mslr", queries=6, features=3)
    model = replace(new_run(source=source).best_model(), feature_names=("a", "b", "c"))
    raw = replace(source.load(normalize=False)["train"], feature_names=model.feature_names)
    unscaled = replace(model, config=replace(model.config, normalize_features=False))
    for scale in (0.5, 1e3):
        data = replace(raw, features=scale * raw.features)
        expected = unscaled.predict(normalize_queries(data).features)
        scores = model.predict(data.features, offsets=data.offsets)
        np.testing.assert_allclose(scores, expected, atol=1e-6)
        turned = replace(data, features=data.features[:, ::-1], feature_names=("c", "b", "a"))
        assert (model.predict(turned) == scores).all()
        assert (model.sample_rankings(turned, 2, rng=0) == model.sample_rankings(data, 2, rng=0)).all()
        assert model.sample_rankings(data, 2, 4, rng=0).shape == (6, 2, 4)
        with pytest.raises(ValueError, match=r"^offsets must be given, such as \[0, \d+\] for one query: the model"):
            model.predict(data.features)
    with pytest.raises(ValueError, match=r"^offsets only goes with features that are no RankingData, got"):
        model.predict(raw, offsets=raw.offsets)
    wrong = raw.features.copy()
    wrong[raw.n_docs - 1, 1] = np.nan
    for features, message in (
        (raw.features[:, :2], r"features must have shape \(n_docs, 3\), for the model .*, got \(\d+, 2\)"),
        (wrong, rf"features must be finite, got nan at index \({raw.n_docs - 1}, 1\)"),
    ):
        for each in (model, unscaled):
            with pytest.raises(ValueError, match=message):
                each.predict(features, offsets=raw.offsets)
    assert model.predict(np.zeros((0, 3)), offsets=[0]).shape == (0,)
    assert (unscaled.predict(raw.features, offsets=raw.offsets) == unscaled.predict(raw.features)).all()


# --- files of a run


MODEL, MISSING = "model.plrank", object()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, splits):
    """Folder of a run of one epoch, with its checkpoint and its model."""
    folder = tmp_path_factory.mktemp("whole")
    run = TrainingRun(TrainingConfig(hidden=(8,), **SETTINGS), SOURCE, splits, folder, epochs=1)
    run.train()
    run.best_model().save(folder / MODEL)
    return folder


ODD = (MISSING, None, True, "", "x", -1, 0, 2, 12.5, 1e308, 10**12, 10**400, [], [0], [8, 0], {}, {"x": 0})
OTHER_ARRAYS = (
    *(lambda a: a.reshape(-1)[:0], lambda a: a[np.newaxis], np.sum, np.float64, lambda a: np.full(a.shape, "x")),
    lambda a: a * np.float32(np.nan),
)


def places(value, place=()):
    """Keys and positions that lead to each entry in a value of JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inside:
        yield from ((*place, key), *places(member, (*place, key)))


def opened_model(path, splits, monkeypatch):
    """A model predicts and draws its history."""
    model = load_model(path)
    assert np.isfinite(model.predict(np.zeros((2, model.n_features)), offsets=[0, 2])).all()
    monkeypatch.setattr(curve_module, "new_panels", lambda *_: (Mock(), [[Mock()]]))
    if model.history:
        model.plot()


def opened_checkpoint(path, splits, monkeypatch):
    """A run goes on by a step, and is saved; or its data are others."""
    monkeypatch.setattr(Source, "load", lambda self, **how: loaded.append(self) or splits)
    # A step takes no time, however many samples the settings ask for.
    monkeypatch.setattr(loss_module, "gradient", lambda method, scores, *_, **how: np.zeros(len(scores)))
    loaded = []
    try:
        run = TrainingRun.resume(path.parent, epochs=2)
    except ValueError as error:
        if loaded and ("data are not those" in str(error) or "labels" in str(error)):
            return
        raise
    run.train(interrupted=stop_after(1))
    run.best_model()


@pytest.mark.parametrize(("name", "opened"), [(MODEL, opened_model), (CHECKPOINT, opened_checkpoint)])
def test_any_contents_of_a_file(whole, tmp_path, monkeypatch, splits, name, opened):
    """The digest is right, the contents are not: each entry of the header has odd values in turn, each array others. A
    file is refused by its name, before data are read, or is a model or a run.

    Mutants: an entry read outside the block that names the file; an error of a constructor let through; a network of
    10^12 inputs built before its weights are compared; weights of another type; arrays that nobody reads; a history
    without the metric that the plot shows; moments of Adam of another shape.
    """
    monkeypatch.setattr(os, "fsync", lambda file: None)
    path, kind = tmp_path / name, name.partition(".")[0]
    header, arrays = read_archive(whole / name, kind)

    def is_refused(header, arrays):
        write_archive(path, kind, header, arrays)
        try:
            opened(path, splits, monkeypatch)
        except ValueError as error:
            assert str(error).startswith(f"{kind} {path} is of another version")  # noqa: PT017 - or it is opened
            return True
        return False

    assert not is_refused(header, arrays)
    refused = set()
    for *outer, last in places(header):
        for value in ODD:
            other = copy.deepcopy(header)
            inner = functools.reduce(operator.getitem, outer, other)
            if value is MISSING:
                del inner[last]
            else:
                inner[last] = value
            if is_refused(other, arrays):
                refused.add((*outer, last, "gone" if value is MISSING else str(value)))
    history = ("history",) if name == MODEL else ("progress", "history")
    required = {("config", name, "x") for name in ("cutoff", "hidden", "learning_rate", "method", "samples", "seed")}
    required |= {(*place, "gone") for place in (("config",), history, (*history, 0), (*history, 1, "ndcg_query"))}
    if name == MODEL:
        required |= {(name, "gone") for name in ("n_features", "epoch", "train")}
        required |= {("n_features", "12.5"), ("n_features", "2"), ("epoch", "-1"), ("epoch", "2"), ("train", "2")}
    else:
        required |= {(name, "gone") for name in ("source", "fingerprints", "progress", "epochs", "minutes", "patience")}
        required |= {("progress", "epoch", "[]"), ("progress", "best_epoch", "2"), ("patience", "0"), ("epochs", "x")}
    assert refused >= required, required - refused
    assert is_refused({**header, "config": {**header["config"], "momentum": 0.9}}, arrays)
    for name, array in arrays.items():
        assert is_refused(header, {key: other for key, other in arrays.items() if key != name})
        for change in OTHER_ARRAYS:
            other = change(array)
            same = (other.shape, other.dtype) == (array.shape, array.dtype) and np.isfinite(other).all()
            assert is_refused(header, {**arrays, name: other}) or same
    assert is_refused(header, {**arrays, "extra": np.zeros(3, np.float32)})


@pytest.mark.parametrize("settings", [{"objective": "disparity"}, {"metric": "err"}, {"optimizer": "sgd"}])
def test_own_checkpoints_and_models_are_whole(new_run, tmp_path, settings):
    """And keep the order of the metrics. Mutants: the names of the metrics in place of NDCG's; the optimizer's state
    expected of Adam; the metrics in the order of the file."""
    run = new_run(**settings, **({} if "optimizer" in settings else {"method": "auto"}))
    run.train()
    again = TrainingRun.resume(tmp_path, epochs=2)
    assert repr(again.progress.history) == repr(run.best_model().history)
    assert again.train() == "epochs"
    run.best_model().save(tmp_path / MODEL)
    assert repr(load_model(tmp_path / MODEL).history) == repr(run.best_model().history)


# --- losses and fairness


@pytest.mark.parametrize("method", LOSSES)
def test_losses_are_descended(splits, method):
    """Mutants: the sign; relevance in place of labels; the cutoff, or the random order of ties, not handed on."""
    train, rng = splits["train"], np.random.SeedSequence(0)
    scores = np.random.default_rng(3).normal(size=train.n_docs)
    options = {"cutoff": 4} if method in WITH_CUTOFF else {}
    options |= {"ties": "random", "rng": rng} if method in WITH_TIES else {}
    metric = LabelledMetric("dcg", np.zeros(train.n_docs), plr.dcg_weights(4), None, 4)
    batch = {"offsets": train.offsets, "n_threads": 1}
    ascent = gradient(method, scores, metric, n_samples=1, rng=rng, labels=train.labels, **batch)
    descent = getattr(plr.losses, method)(scores, train.labels, **batch, **options)[1]
    np.testing.assert_array_equal(ascent, -descent)


@pytest.mark.parametrize(
    ("profile", "settings"),
    [
        ("yahoo", {"method": "cmc", "samples": 20}),
        ("mslr", {"optimizer": "sgd", "learning_rate": 0.05}),
    ],
    ids=["sampled", "sgd"],
)
def test_disparity_is_lowered(new_run, profile, settings):
    """On the training data, and on others: half or less of what was measured.

    Mutants: the sign; the best epoch by the highest disparity; merit as gains over the ideal, whose disparity has
    gradients a thousand times smaller (SGD); merit scaled by the disparity instead of its root.
    """
    config = TrainingConfig(objective="disparity", **settings)
    run = new_run(config, source=Source(profile=profile, queries=200, features=60), epochs=30)
    train = run.splits["train"]
    equal = plr.exposure(np.zeros(train.n_docs), run.loss.metric.rank_weights, offsets=train.offsets)
    at_equal_scores = fairness.disparity(equal, run.loss.metric.relevance, offsets=train.offsets)[0]
    assert at_equal_scores.mean() == pytest.approx(1.0)
    before = run.evaluate(train)["disparity"]
    run.train()
    assert run.evaluate(train)["disparity"] < 0.95 * before
    values = [entry["disparity"] for entry in run.progress.history]
    assert min(values) < (0.92 if profile == "yahoo" else 0.98) * values[0]
    assert run.progress.best_epoch == min(range(31), key=lambda epoch: (values[epoch], -epoch))


def test_merit_that_is_equal(new_run):
    """Exposure is in proportion already. Mutant: division by a disparity of 0."""
    data = replace(IRRELEVANT, labels=np.ones(3))
    run = new_run(objective="disparity", cutoff=3, data={"train": data, "vali": data})
    assert np.isfinite(run.loss.metric.relevance).all()
