"""Every benchmark of asv runs: once for each name it takes, at its smallest sizes."""

import importlib
import inspect
import itertools
import pkgutil
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "asv_benchmarks"


def smallest(values):
    """All names, and the least number or list of numbers."""
    named = [value for value in values if isinstance(value, (str, bool)) or value is None]
    return named or [min(values)]


def benchmarks():
    sys.path.insert(0, str(FOLDER))
    try:
        package = importlib.import_module("benchmarks")
        modules = [
            importlib.import_module(f"benchmarks.{module.name}") for module in pkgutil.iter_modules(package.__path__)
        ]
    finally:
        sys.path.remove(str(FOLDER))
    for module in modules:
        for class_name, class_ in inspect.getmembers(module, inspect.isclass):
            names = [name for name in dir(class_) if name.startswith(("time_", "track_", "peakmem_"))]
            params = getattr(class_, "params", ())
            params = params if params and isinstance(params[0], (list, tuple)) else [params] if params else []
            for name in names if class_.__module__ == module.__name__ else []:
                for values in itertools.product(*map(smallest, params)):
                    yield pytest.param(class_, name, values, id="-".join([class_name, name, *map(str, values)]))


@pytest.mark.parametrize(("class_", "name", "values"), [*benchmarks()])
def test_runs(class_, name, values):
    """Mutants: an estimator misspelt in a list of names; an argument that no function has."""
    benchmark = class_()
    if hasattr(benchmark, "setup_cache"):
        values = (benchmark.setup_cache(), *values)
    try:
        for step in ("setup", name, "teardown"):
            if step == name or hasattr(benchmark, step):
                getattr(benchmark, step)(*values)
    except NotImplementedError as why:  # a combination to pass over; or a function that an old version lacks
        if not any(reason in str(why) for reason in ("minutes", "not installed")):
            raise
        pytest.skip(str(why))


def test_cost_of_an_epoch_is_time_of_the_processor(monkeypatch):
    """docs/benchmarks.md says so: on a busy machine the calls' time by the clock was five times as long. Mutant: the
    clock, whose seconds are of no use here."""
    monkeypatch.syspath_prepend(FOLDER)
    processor = itertools.count()
    module = importlib.import_module("benchmarks.epoch_cost")
    monkeypatch.setattr(module.RULER.Method, "call", lambda *arguments: lambda: None)
    monkeypatch.setattr(time, "process_time", lambda: 0.001 * next(processor))
    cost = module.EpochCost()
    cost.setup("exact", 5, 100, "yahoo")
    seconds = cost.track_seconds_per_epoch("exact", 5, 100, "yahoo")
    assert seconds == pytest.approx(0.001 * cost.workload.per_epoch)
