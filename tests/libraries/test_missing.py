"""Without an optional library the rest of the package works, and what needs the library names it and its extra."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plrank_fast

ADAPTERS = [  # modules of the package that need a library
    path.stem for path in sorted(Path(plrank_fast.__file__).parent.glob("*.py")) if "import_extra(" in path.read_text()
]

# package: the module that needs it, a call that does unless the import does, and what is to be installed
NEEDED = {
    "torch": ("torch", "", "torch"),
    "jax": ("jax", "", "jax"),
    "sklearn": ("sklearn", "", "scikit-learn"),
    "scipy": ("sklearn", "", "scikit-learn"),
    "lightgbm": ("lightgbm", "", "lightgbm"),
    "xgboost": ("xgboost", "Objective()(None, None)", "xgboost"),
    "catboost": ("catboost", "", "catboost"),
}
PROGRAM = """
import importlib, json, sys
told = {}
for package, (name, call, _) in json.loads(sys.argv[1]).items():
    sys.modules[package] = None
    try:
        module = importlib.import_module(f"plrank_fast.{name}")
        exec(f"module.{call}")
    except ImportError as error:
        told[package] = str(error)
    sys.modules.pop(package)
    sys.modules.pop(f"plrank_fast.{name}", None)
print(json.dumps(told))
"""


def test_each_is_named_with_its_extra():
    """Mutants: a plain import at the top of an adapter; the bare ModuleNotFoundError; another extra."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(NEEDED)]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert told.keys() == NEEDED.keys()
    for package, (_, _, extra) in NEEDED.items():
        assert f'pip install "{extra}>=' in told[package]


def test_import_stays_light():
    """Mutant: importlib.metadata, which brings 50 modules for the text of an error, imported at the top."""
    program = "import sys, numpy.random; known = set(sys.modules); import plrank_fast; print(*set(sys.modules) - known)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"importlib.metadata", *NEEDED} & set(loaded)


def test_adapters_are_attributes():
    """They are imported at their first use; one that cannot be says why. Mutant: an ImportError, unlike hasattr."""
    program = (
        "import sys; sys.modules['torch'] = None; import plrank_fast as plr\n"
        "print(plr.xgboost.__name__, hasattr(plr, 'torch'), hasattr(plr, 'tensorflow'))\n"
        "try: plr.torch\nexcept AttributeError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.startswith("plrank_fast.xgboost False False\nplrank_fast.torch cannot be imported: ")
    assert 'pip install "torch' in told


@pytest.mark.parametrize("extra", ADAPTERS)
def test_each_adapter_is_an_attribute(extra):
    """The package has it and names it in its overview. Mutant: sentence_transformers left out of either."""
    try:
        module = importlib.import_module(f"plrank_fast.{extra}")
    except ImportError:
        with pytest.raises(AttributeError, match=rf"plrank_fast\.{extra} cannot be imported: "):
            getattr(plrank_fast, extra)
    else:
        assert getattr(plrank_fast, extra) is module
    assert re.search(rf"``(plrank_fast)?\.{extra}``", plrank_fast.__doc__)
