# Everything is installed into .venv, and stamp files there make the next run quick.
# This needs Python 3.11 or later, a C compiler and make; choose another Python with `make PYTHON=python3.12 ...`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ASV = $(abspath $(BIN)/asv)
# cython-lint calls pycodestyle by its name
export PATH := $(CURDIR)/$(BIN):$(PATH)
CHECK_PYTHON = @$(PYTHON) -c \
	'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
METADATA := pyproject.toml setup.py constraints-test.txt
SOURCES := setup.py $(shell find plrank_fast -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -path '*/kernels/*.c')
PIP := $(BIN)/python -m pip install --disable-pip-version-check

# $(call GOES_ON,installing) before a command writes a line every few seconds while it runs, and keeps its exit status:
# pip is silent while it unpacks, and a compiler while it works on the largest kernel. An interrupt that ends the shell
# ends the lines too.
SECONDS_OF_SILENCE ?= 8
GOES_ON = began=$$(date +%s); (while sleep $(SECONDS_OF_SILENCE) > /dev/null 2>&1 && kill -0 $$$$ 2> /dev/null; do \
	echo "  still $(1), after $$(($$(date +%s) - began)) s"; done) & trap "kill $$! 2> /dev/null" EXIT;

# This trains the default preset on half the size of the real set, to fit the memory of small machines.
TRAIN_FLAGS ?= --profile yahoo --queries 10000 --epochs 40 --minutes 1.5 --output runs/yahoo --overwrite

.PHONY: help train reproduce-quick test test-quick test-all test-newest docs docstrings note wheel wheels hunt mutants fuzz sanitize tsan matrix soak lint bench bench-quick bench-instructions dashboard build clean compiled

.NOTPARALLEL:

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 8

train: $(VENV)/train compiled  ## train a ranker on generated data, print its NDCG, draw the learning curve (TRAIN_FLAGS=...)
	$(BIN)/python -m plrank_fast train $(TRAIN_FLAGS)

# Running the same command again continues a stopped run; docs/benchmarks.md covers larger sets and more seeds.
REPRODUCE_FLAGS ?= --minutes 8 --output runs/reproduce-quick

reproduce-quick: $(VENV)/train compiled  ## repeat the paper's experiments and write a report, in 10 minutes (REPRODUCE_FLAGS=...)
	$(BIN)/python experiments/reproduce.py $(REPRODUCE_FLAGS)

# The files of tests are shared out to so many processes, because most of their time goes to programs that they start.
# They come in their own order: xdist would put those with the fewest tests last, which are among the longest.
TEST_WORKERS ?= 2
SHARED_OUT = -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder
test: build  ## run the tests (TEST_WORKERS=2; TEST_FLAGS=... go to pytest)
	$(BIN)/python -m pytest $(SHARED_OUT) $(TEST_FLAGS)

# The newest versions of other libraries need a newer Python, with an environment and compiled modules of its own. These
# tests depend on what other libraries do; without PyTorch, its tests are skipped. NEWEST_EXTRAS="plrank-fast[train]" adds it.
NEWEST_PYTHON ?= python3.13
NEWEST_EXTRAS ?=
NEWEST_TESTS ?= $(addprefix tests/,libraries hand enumeration faults/test_every_argument.py)
test-newest: $(VENV)/newest/installed  ## run the tests of other libraries with their newest versions (NEWEST_PYTHON=python3.13)
	$(VENV)/newest/bin/python -m pytest $(SHARED_OUT) $(NEWEST_TESTS) $(TEST_FLAGS)

# These folders test the source and the numbers; the others start programs, train, or need other libraries.
test-quick: build  ## run the tests of numbers and of the source, in two minutes (TEST_FLAGS=...)
	$(BIN)/python -m pytest $(SHARED_OUT) $(addprefix tests/,structure hand enumeration references invariants) $(TEST_FLAGS)

test-all: build $(VENV)/test-all $(VENV)/test-transformers  ## run the tests with TensorFlow, Dask, Spark, Ray, sentence-transformers, trl too
	PYTHONPATH=$(CURDIR) $(VENV)/all/bin/python -m pytest \
		$(addprefix tests/libraries/test_,tensorflow.py interchange.py dask.py spark.py ray.py inputs.py) $(TEST_FLAGS)
	PYTHONPATH=$(CURDIR) $(VENV)/transformers/bin/python -m pytest \
		$(addprefix tests/libraries/test_,sentence_transformers.py trl.py) $(TEST_FLAGS)

# The SIMD levels of the separate builds (test-clang, sanitize, tsan), as in LEVELS="baseline avx2"; default: all.
LEVELS ?=

# This is a separate build under build/clang, for the tests of threads and of numbers that a compiler could change,
# because clang has another OpenMP. They run in that folder: in this one, programs that they start would import the
# other build. CLANG=clang-19 names a version.
CLANG ?= clang
CLANG_TESTS ?= $(addprefix tests/,$(addprefix references/test_,vector_math.py selection.py plrank_pass.py losses.py) \
	$(addprefix enumeration/test_,estimators.py pl_rank.py conditional.py stochastic_rank.py exact.py exact_noise.py) \
	statistical/test_samplers_exact.py hand/test_metrics.py \
	$(addprefix invariants/test_,batch_driver.py long_queries.py simd_levels.py) \
	processes/test_threads.py processes/test_teams.py)

test-clang: build  ## build with clang beside everything else and run the numerical tests (CLANG=clang-19, LEVELS=..., CLANG_TESTS=...)
	PLRANK_FAST_LEVELS="$(LEVELS)" CC=$(CLANG) $(BIN)/python setup.py -q build --build-lib build/clang/lib --build-temp build/clang/temp
	cd build/clang && PYTHONPATH=$(CURDIR)/build/clang/lib ../../$(BIN)/python -c \
		"import plrank_fast as plr; info = plr.build_info(); print(info); assert 'clang' in info['compiler'] and info['openmp']"
	cd build/clang && PYTHONPATH=$(CURDIR)/build/clang/lib CC=$(CLANG) ../../$(BIN)/pytest -q $(addprefix ../../,$(CLANG_TESTS))

hunt: build  ## search for problems on which an error bound fails (HUNT_FLAGS="--minutes 60 --seed 0")
	$(BIN)/python tests/attackers/hunt.py $(HUNT_FLAGS)

fuzz: build  ## fuzz LETOR files (FUZZ_FLAGS="--minutes 60 --seed 0")
	$(BIN)/python tests/attackers/fuzz.py $(FUZZ_FLAGS)

soak: build  ## call everything from 20 threads at once, with forks, signals and little memory (SOAK_FLAGS="--minutes 60 --seed 0")
	$(BIN)/python tests/attackers/soak.py $(SOAK_FLAGS)

mutants: build  ## break the sources on purpose and see whether tests notice (MUTANTS_FLAGS="--count 10 --module ...")
	$(BIN)/python tests/attackers/mutants.py $(MUTANTS_FLAGS)

# This makes what `pip install plrank-fast` would install, with pinned tools and OpenMP's runtime inside, and uses it
# without a compiler, outside of this folder. With SOURCE_DATE_EPOCH two builds have the same bits.
WHEEL_TESTS ?= tests/hand tests/invariants tests/processes/test_processes.py
wheel: export SOURCE_DATE_EPOCH ?= 315532800
wheel: $(VENV)/release  ## make dist/*.tar.gz and dist/*.whl, check the wheel, train and test with it without a compiler
	rm -rf dist build/wheel
	$(VENV)/wheel-tools/bin/python -m build --no-isolation --outdir build/wheel/linux .
	PATH="$(abspath $(VENV)/wheel-tools/bin):$$PATH" auditwheel repair --wheel-dir dist build/wheel/linux/*.whl
	cp build/wheel/linux/*.tar.gz dist
	$(PYTHON) -m venv build/wheel/user
	build/wheel/user/bin/python -m pip install -q --disable-pip-version-check "$$(ls $(CURDIR)/dist/*.whl)[train]" \
		"pytest>=8" "pytest-timeout>=2.3" "scipy>=1.13" "scikit-learn>=1.6" -c constraints-test.txt
	cd build/wheel && CC=false user/bin/plrank-fast train --profile yahoo --queries 500 --features 20 --epochs 3 --output run
	cd build/wheel && CC=false user/bin/pytest -q $(addprefix ../../,$(WHEEL_TESTS))
	cd dist && sha256sum *

# Each Python has its own tools and folder. The kernels do not depend on Python, so ccache shares them if it is in use.
# Each Python makes the sdist, with the same bits.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
wheels:  ## `make wheel` for each of these Pythons, one after another (PYTHONS="python3.11 /opt/python3.12/bin/python3")
	rm -rf build/wheels
	mkdir -p build/wheels
	set -e; for python in $(PYTHONS); do \
		version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		$(MAKE) --no-print-directory wheel PYTHON=$$python VENV=.venv/wheel-$$version; \
		test ! -e build/wheels/*.tar.gz || cmp dist/*.tar.gz build/wheels/*.tar.gz; \
		cp dist/* build/wheels; \
	done
	rm -rf dist
	mv build/wheels dist
	cd dist && sha256sum *

# This is a separate build, as for clang. Leaks are not reported, because an interpreter that ends leaves some. Other
# options allow for tests that ask for too much memory, and for pytrec_eval, which frees memory from new[]. A report
# ends the process, and pytest must not capture standard error, or the report would be lost. If SANITIZE_MODULES names
# modules, the others are copied from this folder, without sanitizers.
SANITIZE_MODULES ?=
SANITIZE_TESTS ?= $(addprefix tests/,$(addprefix references/test_,vector_math.py selection.py plrank_pass.py losses.py \
	threshold_sampler.py) \
	$(addprefix enumeration/test_,estimators.py pl_rank.py conditional.py stochastic_rank.py exact_bounds.py) \
	statistical/test_sampling.py hand/test_metrics.py \
	$(addprefix invariants/test_,batch_driver.py plain_arguments.py long_queries.py) processes/test_threads.py)
sanitize: folder = build/sanitize$(if $(SANITIZE_MODULES),-part)
sanitize: build  ## run tests with the address and undefined behaviour sanitizers (needs GCC; LEVELS=..., SANITIZE_TESTS=...)
	$(if $(SANITIZE_MODULES),rm -rf $(folder) && mkdir -p $(folder)/lib && cp -r plrank_fast $(folder)/lib)
	PLRANK_FAST_SANITIZE=address,undefined PLRANK_FAST_LEVELS="$(LEVELS)" PLRANK_FAST_MODULES="$(SANITIZE_MODULES)" CC=gcc \
		$(BIN)/python setup.py -q build $(if $(SANITIZE_MODULES),--force) --build-lib $(folder)/lib --build-temp $(folder)/temp
	cd $(folder) && LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:alloc_dealloc_mismatch=0 \
		UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		PYTHONPATH=$(CURDIR)/$(folder)/lib ../../$(BIN)/pytest -q --capture=sys $(addprefix ../../,$(SANITIZE_TESTS))

# LLVM's OpenMP tells ThreadSanitizer how threads wait for each other; GCC's does not (tests/attackers/races.py).
tsan: build  ## call every function on teams under ThreadSanitizer (needs clang and its libomp; CLANG=clang-19, LEVELS=...)
	PLRANK_FAST_SANITIZE=thread PLRANK_FAST_LEVELS="$(LEVELS)" CC=$(CLANG) $(BIN)/python setup.py -q build \
		--build-lib build/tsan/lib --build-temp build/tsan/temp
	PYTHONPATH=$(CURDIR)/build/tsan/lib $(BIN)/python tests/attackers/races.py --compiler $(CLANG)

matrix: build  ## test the numbers under other compilers, levels, options and constants (MATRIX_FLAGS="--rows lowest")
	$(BIN)/python tests/attackers/matrix.py $(MATRIX_FLAGS)

lint: build  ## check style, types, the stubs of the compiled modules, and the workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/cython-lint plrank_fast
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/stubtest --mypy-config-file pyproject.toml --ignore-missing-stub plrank_fast.cython_plrank
	$(BIN)/zizmor -q --offline .github

docstrings:  ## write shared descriptions of parameters (docs/shared_descriptions.txt) into docstrings, new functions into the reference
	$(PYTHON) docs/fill_docstrings.py

# Every warning is an error: a broken link, a docstring that cannot be rendered, a script that fails.
docs: $(VENV)/docs compiled  ## build the documentation site into build/docs (SITE_ADDRESS=https://... adds the version switcher)
	$(BIN)/python -m sphinx -W --keep-going -d build/doctrees docs build/docs
	@echo "the site begins at build/docs/index.html"

# A browser prints the note; the PDF is not committed.
CHROMIUM ?= chromium
note: docs  ## print the technical note into build/note.pdf (CHROMIUM=...)
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf=build/note.pdf \
		"file://$(CURDIR)/build/docs/numerics.html"

bench: $(VENV)/bench compiled  ## run the asv benchmarks in this environment (BENCH_FLAGS=... go to asv run)
	cd asv_benchmarks && $(ASV) machine --yes > /dev/null && $(ASV) run --show-stderr $(BENCH_FLAGS) \
		--environment existing:$(abspath $(BIN)/python) --set-commit-hash $$(git rev-parse HEAD)

bench-quick:  ## run each asv benchmark once, to see that it works
	$(MAKE) --no-print-directory bench BENCH_FLAGS="--quick $(BENCH_FLAGS)"

# The pages need a server, because browsers do not let pages of files read the results.
dashboard: $(VENV)/bench  ## publish the results of `make bench` into build/dashboard, with all scripts (needs npm)
	$(BIN)/python asv_benchmarks/dashboard.py build/dashboard
	@echo "look at it: $(BIN)/python -m http.server --directory build/dashboard --bind 127.0.0.1 8000"

bench-instructions: $(VENV)/bench compiled  ## count instructions per kernel, fail where one has grown (needs valgrind)
	$(BIN)/python asv_benchmarks/instructions.py $(INSTRUCTIONS_FLAGS)

build: $(VENV)/test compiled  ## install for development and compile what has changed

clean:  ## remove the environment and everything built
	rm -rf docs/auto_gallery docs/reference/generated
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find plrank_fast -name '*.so' -delete
	find plrank_fast -name '*.c' -not -path '*/kernels/*' -delete
	find . -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	$(CHECK_PYTHON)
	@echo "Setting up an environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(call GOES_ON,installing the tools of the build) $(PIP) -q "pip>=25.1" "setuptools>=77" "Cython>=3.3"

# This is a separate make, because the installation before it may have compiled everything already.
compiled: $(BIN)/python
	@$(MAKE) -s $(VENV)/compiled

$(VENV)/compiled: $(SOURCES)
	@$(call GOES_ON,compiling) $(BIN)/python setup.py -q build_ext --inplace
	@touch $@

# Compilation comes before installation, because pip hides its output. Extras are installed under the project's name,
# which leaves the installed project as it is.
$(VENV)/installed: $(BIN)/python $(METADATA)
	@echo "Compiling the kernels for each SIMD level, once: about a minute on two processors"
	@$(call GOES_ON,compiling) $(BIN)/python setup.py -q build_ext --inplace
	@$(call GOES_ON,installing the project) $(PIP) -q --no-build-isolation -e .
	@touch $@ $(VENV)/compiled

$(VENV)/train: $(VENV)/installed
	@echo "Downloading the libraries of the training command, with PyTorch: some minutes on a slow connection"
	@$(call GOES_ON,installing PyTorch and the other libraries) $(PIP) "plrank-fast[train]" -c constraints-test.txt
	@touch $@

$(VENV)/bench: $(VENV)/installed
	@$(call GOES_ON,installing the libraries of the benchmarks) $(PIP) "plrank-fast[train]" --group asv -c constraints-test.txt
	@touch $(VENV)/train $@

$(VENV)/docs: $(VENV)/installed
	@$(call GOES_ON,installing the libraries of the documentation) $(PIP) --group docs -c constraints-test.txt
	@touch $@

$(VENV)/test: $(VENV)/installed
	@$(call GOES_ON,installing the libraries of the tests) $(PIP) "plrank-fast[train]" --group test -c constraints-test.txt
	@touch $(VENV)/train $@

$(VENV)/release: requirements-release.txt
	$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)/wheel-tools
	$(VENV)/wheel-tools/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-release.txt
	@touch $@

$(VENV)/newest/bin/python:
	$(NEWEST_PYTHON) -m venv $(VENV)/newest

NEWEST_PIP := $(VENV)/newest/bin/python -m pip install -q --disable-pip-version-check
$(VENV)/newest/installed: $(VENV)/newest/bin/python $(SOURCES) $(METADATA) constraints-newest.txt
	@$(call GOES_ON,installing the tools of the build) $(NEWEST_PIP) "pip>=25.1" "setuptools>=77" "Cython>=3.3"
	@$(call GOES_ON,compiling) $(VENV)/newest/bin/python setup.py -q build_ext --inplace
	@$(call GOES_ON,installing the newest libraries) $(NEWEST_PIP) --no-build-isolation -e . --group test $(NEWEST_EXTRAS) -c constraints-newest.txt
	@touch $@

# TensorFlow needs its own versions of other packages, and transformers brings many. Their environments have the same
# Python, so the modules compiled in this folder serve all: the project is not installed and compiled again.
ALONE = all transformers
$(ALONE:%=$(VENV)/test-%): $(VENV)/test-%: $(VENV)/test
	$(BIN)/python -m venv $(VENV)/$*
	$(VENV)/$*/bin/python -m pip install -q --disable-pip-version-check "pip>=25.1"
	$(VENV)/$*/bin/python -m pip install -q --disable-pip-version-check --group test-$*
	@touch $@
