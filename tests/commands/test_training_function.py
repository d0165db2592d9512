"""Training from Python: the kinds of data, the model and what it carries, early stopping, an interrupt."""

import os
import pickle
import signal
import tracemalloc
from dataclasses import replace
from typing import get_args, get_type_hints

import numpy as np
import pandas
import pytest

import plrank_fast as plr
from plrank_fast.boosting import RankingMetric
from plrank_fast.training.config import TrainingConfig
from plrank_fast.training.train import Settings
from plrank_fast.validation import LossName

torch = pytest.importorskip("torch")
DATA = plr.data.generate("yahoo", 40, n_features=6)
ROWS = np.arange(40) % 5 == 4


def train(*data, **options):
    return plr.train(*data, **{"epochs": 3, "quiet": True, **options})


def same(one, other):
    return one.history == other.history and all(np.array_equal(one.weights[n], other.weights[n]) for n in one.weights)


def test_kinds_of_data():
    """Equal data and seeds give equal models. Mutants: validation queries that train too; another share of them;
    initial weights from PyTorch's global generator; data not in single precision."""
    model = train(DATA)
    torch.manual_seed(1)
    frame = pandas.DataFrame(DATA.features.astype(np.float64)).assign(label=DATA.labels, qid=DATA.qid)
    assert same(model, train(frame))
    assert same(model, train((DATA.features, DATA.labels, DATA.qid)))
    assert same(model, train(DATA[~ROWS], DATA[ROWS]))
    assert not same(model, train(DATA, DATA[ROWS]))
    assert not same(model, train(DATA, seed=1))


@pytest.mark.parametrize("numbers_at_once", [1, 100, 2**22])
def test_features_are_normalised_as_they_are_used(monkeypatch, numbers_at_once):
    """Data from `normalize_queries` give the same model. Mutants: a batch's range for all of its queries; rows
    of the whole data set for rows of a part; features of the first chunk for all; the data changed."""
    normalized = plr.data.normalize_queries(DATA)
    expected = train(normalized[~ROWS], normalized[ROWS], normalize_features=False)
    monkeypatch.setattr("plrank_fast.training.trainer.NUMBERS_AT_ONCE", numbers_at_once)
    before = DATA.fingerprint()
    for features in (DATA.features, np.asfortranarray(DATA.features), DATA.features.astype(np.float64)):
        model = train(replace(DATA, features=features))
        assert all(np.array_equal(model.weights[name], weights) for name, weights in expected.weights.items())
        assert [*model.history[2].values()] == pytest.approx([*expected.history[2].values()], rel=1e-6)
    assert DATA.fingerprint() == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalize_features", [False, True])
def test_features_are_not_kept_twice(dtype, normalize_features):
    """Mutants: parts, or normalised features, that are matrices of their own; a copy in single precision; the features
    of all validation queries at once."""
    data = plr.data.generate("mslr", 400, n_features=136)
    data = replace(data, features=data.features.astype(dtype))
    train(DATA)  # imports
    tracemalloc.start()
    train(data, epochs=1, normalize_features=normalize_features)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.35 * data.features.nbytes


def test_columns_of_frames_in_another_order(tmp_path):
    """They are found by name. Mutants: by position in the validation data, or in ``predict``; names not saved."""
    frame = pandas.DataFrame(DATA.features, columns=list("abcdef")).assign(label=DATA.labels, qid=DATA.qid)
    known, held_out = frame[~np.repeat(ROWS, DATA.list_lengths)], frame[np.repeat(ROWS, DATA.list_lengths)]
    turned = held_out[["qid", *"fedcba", "label"]]
    model = train(known, turned)
    assert same(model, train(known, held_out))
    model.save(tmp_path / "model")
    expected = model.predict(held_out[list("abcdef")].to_numpy(), offsets=DATA[ROWS].offsets)
    for each in (model, plr.load_model(tmp_path / "model")):
        assert np.array_equal(each.predict(turned, offsets=DATA[ROWS].offsets), expected)
    with pytest.raises(ValueError, match=r"^features must have the columns \['c'\], got"):
        model.predict(turned.drop(columns="c"))
    with pytest.raises(ValueError, match=r"^validation must have the features \['a'\], and not \['A'\]"):
        train(known, held_out.rename(columns={"a": "A"}))


def test_model(tmp_path):
    """It predicts, draws, saves, loads and pickles with its history. Mutants: no history in the file or the pickle;
    last weights kept; weights of one layer for another's; a product of BLAS, whose last bits depend on the number of
    documents; the methods of ``Path`` called of another path."""
    model = train(DATA, learning_rate=1.0, batch_queries=4, seed=2)
    assert 0 < model.epoch < 3
    assert repr(model) == f"RankingModel(layers=6 32 32 1, epoch={model.epoch}, train={DATA.name!r})"
    assert len(model.history) == 4
    assert model.epoch == max(range(4), key=lambda epoch: model.history[epoch]["expected_ndcg_query"])
    scores = model.predict(DATA.features, offsets=DATA.offsets)
    held_out = DATA[ROWS]
    of_held_out = model.predict(held_out.features, offsets=held_out.offsets)
    expected = RankingMetric(expected=True).evaluate(of_held_out, held_out.labels, held_out.offsets)
    assert expected == pytest.approx(model.history[model.epoch]["expected_ndcg_query"], rel=1e-5)
    drawn = model.sample_rankings(DATA.features, 3, 5, offsets=DATA.offsets, rng=0)
    assert np.array_equal(drawn, plr.sample_rankings(scores, 3, 5, offsets=DATA.offsets, rng=0))
    normalized = plr.data.normalize_queries(DATA)
    unscaled = replace(model, config=replace(model.config, normalize_features=False))
    alone = [unscaled.predict(row[np.newaxis])[0] for row in normalized.features]
    assert np.array_equal(model.predict(normalized), alone)
    model.save(tmp_path / "model.plrank")
    (path,) = os.scandir(tmp_path)
    for again in (plr.load_model(path), pickle.loads(pickle.dumps(model))):
        assert same(model, again)
        assert np.array_equal(again.predict(DATA.features, offsets=DATA.offsets), scores)
    assert "data:image/png;base64," in model._repr_html_()
    (panel,) = model.plot().axes
    assert [len(line.get_xdata()) for line in panel.lines[:2]] == [4, 4]
    table = [line.split() for line in repr(model.history).split("\n")]
    assert [row[0] for row in table] == ["epoch", "0", "1", "2", "3"]
    assert table[0][1:] == [*model.history[0]]
    assert float(table[-1][1]) == round(model.history[3][table[0][1]], 4)
    assert model.plot()._repr_png_().startswith(b"\x89PNG")
    assert "best by expected NDCG@10" in [text.get_text() for text in panel.get_legend().get_texts()]


def test_patience():
    """Training ends so many epochs after the best. Mutants: epochs counted from the start; the last model."""
    model = train(DATA, epochs=50, patience=2, learning_rate=0.3)
    assert len(model.history) - 1 == model.epoch + 2 < 50


def test_time_that_ends_before_the_first_epoch():
    """Mutant: no word of the untrained network."""
    with pytest.warns(UserWarning, match="^no epoch has ended, so the model is the untrained network: pass more"):
        model = train(DATA, epochs=None, minutes=1e-9)
    assert (model.epoch, len(model.history)) == (0, 1)


def test_interrupt_returns_the_best(monkeypatch):
    """Ctrl-C within the third epoch loses that epoch alone. Mutants: KeyboardInterrupt passed on; all of it counted."""
    from plrank_fast.training import train as module

    show = module.show_progress

    def interrupt(bar, run):
        show(bar, run)
        if run.epochs_done == 2.25:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(module, "show_progress", interrupt)
    model = train(DATA, epochs=100, batch_queries=8)
    assert same(model, train(DATA, epochs=2, batch_queries=8))
    assert len(model.history) == 3


NARROW, NO_LABELS = plr.data.generate("yahoo", 4, n_features=5), pandas.DataFrame({"qid": [1]})

WIDE = replace(DATA, features=DATA.features + np.where(np.arange(DATA.features.size).reshape(-1, 6) == 44, 1e39, 0.0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: train([[1.0]]), TypeError, "data must be a RankingData, a data frame, or a tuple .*, got list"),
        (lambda: train(DATA[:1]), ValueError, "data must have two queries or more without validation, got 1"),
        (lambda: train(DATA, NARROW), ValueError, "must have the 6 features .* got 5"),
        (
            lambda: train(DATA, WIDE),
            ValueError,
            r"features of validation must be .*, got 1e\+39 at index \(7, 2\)",
        ),
        (lambda: train(DATA, patience=0), ValueError, "patience must be at least 1, got 0"),
        (lambda: train(NO_LABELS), ValueError, r"must have the columns \['label'\], got \['qid'\]"),
        (lambda: train(DATA, hidden=32), TypeError, "hidden must be a tuple of integers, got 32"),
        (lambda: train(DATA, k=5), TypeError, r"^train\(\) got an unexpected keyword argument 'k': pass cutoff=k$"),
        (lambda: train(DATA, metrics="mrr"), TypeError, "argument 'metrics'. Did you mean 'metric'?"),
    ],
)
def test_refusals(call, error, message):
    """Mutant of each: the check left out."""
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("method", ["exact", "lambda_rank", "approx_ndcg"])
def test_gains_of_labels(method):
    """Linear gains of 2^label - 1 train the same network. Mutants: exponential gains of each."""
    settings = {"method": method, "batch_queries": 8, "epochs": 2, "quiet": True}
    graded = train(DATA, **settings)
    gained = train(replace(DATA, labels=plr.gains(DATA.labels)), gain="linear", **settings)
    assert same(gained, graded)
    assert train(DATA, gain="linear", **settings).history != graded.history


@pytest.mark.parametrize("metric", ["dcg", "precision", "recall", "mrr", "err", "success", "ap"])
def test_metrics_by_their_names(metric, monkeypatch):
    """Steps ascend the expectation that the loss of PyTorch descends, and the best epoch is chosen by it.

    Mutants: NDCG for the metric in either; documents of other queries; the highest label of the batch.
    """
    from plrank_fast.torch import expected_metric_loss
    from plrank_fast.training import loss as loss_module

    steps, plain = [], loss_module.gradient
    scale = {"max_label": float(DATA.labels.max())} if metric == "err" else {}

    def recorded(method, scores, of_labels, **settings):
        steps.append((scores, plain(method, scores, of_labels, **settings), settings))
        return steps[-1][1]

    monkeypatch.setattr(loss_module, "gradient", recorded)
    model = train(DATA, metric=metric, cutoff=5, batch_queries=8, method="exact")
    assert len(steps) == 12
    for values, ascent, settings in steps[:3]:
        scores = torch.tensor(values, requires_grad=True)
        options = {"metric": metric, "cutoff": 5, "method": "exact", "reduction": "sum", **scale}
        expected_metric_loss(scores, settings["labels"], settings["offsets"], **options).backward()
        np.testing.assert_allclose(ascent, -scores.grad.numpy(), atol=1e-5)
    key = f"expected_{metric}"
    assert model.epoch == max(range(4), key=lambda epoch: (model.history[epoch][key], epoch))
    held_out = DATA[ROWS]
    for expected, name in ((True, key), (False, metric)):
        judge = RankingMetric(metric=metric, cutoff=5, expected=expected, rtol=1e-8, **scale)
        value = judge.evaluate(
            model.predict(held_out.features, offsets=held_out.offsets), held_out.labels, held_out.offsets
        )
        assert model.history[model.epoch][name] == pytest.approx(value, abs=1e-5)


def test_metric_of_a_loss_chooses_the_epoch():
    """By the ranking by score. Mutants: NDCG; the expectation."""
    model = train(DATA, method="list_mle", metric="mrr", cutoff=3)
    assert model.epoch == max(range(4), key=lambda epoch: (model.history[epoch]["mrr"], epoch))
    with pytest.raises(ValueError, match="objective must be 'query' with metric='mrr', got 'dataset'"):
        train(DATA, metric="mrr", objective="dataset")
    with pytest.raises(ValueError, match="method must be 'exact' or 'auto' with metric='ap', got 'pl_rank_3'"):
        train(DATA, metric="ap", method="pl_rank_3")


def test_types_name_every_setting():
    """An editor offers them. Mutants: a setting missing, or of another type; a loss missing in ``LossName``."""
    assert get_type_hints(Settings) == get_type_hints(TrainingConfig)
    assert {*get_args(LossName), "exposure_matching"} == {*plr.losses.__all__}
