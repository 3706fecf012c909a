# The machine needs python3 (3.10 or newer, with venv), Java 17 or newer and make; all else is put into .venv.
PYTHON ?= python3
JOBS ?= 2
# One more than cores, as some of these tests wait for processes: 61 s in place of 66 s on two cores.
QUICK_JOBS ?= 3
DATABASE ?= postgres
SINK ?= delta
SCENARIOS ?= $(if $(filter replica,$(MAKECMDGOALS)),tests/replica/cases,tests/golden/postgres)
SEEDS ?= 1-20
BIN := .venv/bin
READY := .venv/.ready
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Containers often set it. Without compiled modules each process that a test starts compiles the package, 0.4 s of CPU, and
# each worker of pytest compiles the tests, 4 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help env demo check quick quick-tests coverage format test golden replica compare-replica compare crash long spark-versions python-versions deploy-lint outside-tools big types model fuzz bench bench-snapshot bench-kafka bench-compare docs lock dist clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(READY)  ## Create .venv with everything that is needed, in the versions of requirements.lock

$(READY): requirements.lock pyproject.toml tools/preconditions.py
	@$(PYTHON) tools/preconditions.py
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the packages of requirements.lock into .venv (the first time takes a few minutes)"
	@$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --no-deps -e .
	@echo "Writing an archive of Spark's classes, which makes each start faster (half a minute)"
	-@$(BIN)/python -m tailrace.pipeline.spark_start.class_archive_writer
	@touch $@

demo: env  ## Run the demo: a database with traffic, a replica, and a comparison (DATABASE=name, SINK=iceberg or postgres, KEEP=1 leaves it running)
	@$(if $(filter postgres,$(DATABASE)),$(BIN)/tailrace demo,$(BIN)/python -m tests.servers.$(DATABASE).demo) --sink $(SINK) $(if $(KEEP),--keep)

check: env  ## Lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

quick: env  ## Lint, formatting, types, and beside them the tests that need no server, in about a minute
	@$(MAKE) --no-print-directory -j 2 check quick-tests

quick-tests: env
	TAILRACE_FUZZ_EXAMPLES=10 $(BIN)/python -m pytest -q -n $(QUICK_JOBS) --dist worksteal --hypothesis-profile=quick -m "not server and not slow and not long and not crash and not big" tests/unit

coverage: env  ## Print which parts of src the tests of `make quick` run, as lines and branches
	TAILRACE_FUZZ_EXAMPLES=10 $(BIN)/python -m coverage run -m pytest -q --hypothesis-profile=quick --timeout=0 -m "not server and not slow and not long and not crash and not big" tests/unit
	$(BIN)/python -m coverage report --skip-covered --sort=cover

format: env  ## Format the code, and fix what lint can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test: check  ## Check, then the default suite with real servers, two files at a time (TESTS=folder, JOBS=n)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(TESTS)

golden: env  ## Compare with recordings of the reference engine (SCENARIOS=folder)
	@$(BIN)/python -m tests.golden.run "$(SCENARIOS)"

replica: env  ## Compare replicas with their sources after each case (SCENARIOS=folder)
	@$(BIN)/python -m tests.replica.run "$(SCENARIOS)"

compare-replica: env  ## Compare replicas with their sources after random cases (DATABASE=name, SEEDS=1-20,35)
	@$(BIN)/python -m tests.compare_replica "$(DATABASE)" "$(SEEDS)"

compare: env  ## Compare with the reference engine on random scenarios (DATABASE=name, SEEDS=1-20,35)
	@$(BIN)/python -m tests.compare "$(DATABASE)" "$(SEEDS)"

crash: env  ## Kill processes everywhere and compare every row (DATABASE=name, TAILRACE_CRASH_SEEDS=random cases a test)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m crash $(if $(filter-out postgres,$(DATABASE)),tests/conformance -k $(DATABASE))

long: env  ## Run the tests that the default suite leaves out as they take long
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m long

spark-versions: env  ## Run the wheel on each supported Spark, in environments below .work/spark (RELEASE="4.1 postgres", or moved)
	$(BIN)/python tools/spark_environments.py
	$(BIN)/python tools/spark_versions.py $(RELEASE)

python-versions: env  ## Install the wheel and run the unit tests with each Python of this machine (VERSIONS=3.12)
	$(BIN)/python tools/python_versions.py $(VERSIONS)

deploy-lint: env  ## Lint the files of deploy/ with their own tools, which are installed below .work/lint
	$(BIN)/python tools/deploy_lint.py

outside-tools: env  ## Try the console in a browser and a process with Prometheus and kcctl, installed below .work/outside (ARGS=-k browser)
	$(BIN)/python tools/outside_tools.py $(ARGS)

big: env  ## Read a transaction of millions of rows and measure memory
	$(BIN)/python -m pytest -m big -s --timeout=0

types: env  ## Compare values of every type, in text and binary form, with models (TAILRACE_TYPE_EXAMPLES=values for each type)
	TAILRACE_TYPE_EXAMPLES=$${TAILRACE_TYPE_EXAMPLES:-10000} $(BIN)/python -m pytest tests/types --timeout=0

model: env  ## Run snapshots with crashes against a model (TAILRACE_MODEL_EXAMPLES=histories)
	TAILRACE_MODEL_EXAMPLES=$${TAILRACE_MODEL_EXAMPLES:-2000} $(BIN)/python -m pytest tests/model --timeout=0

fuzz: env  ## Search longer for inputs that break a decoder (TAILRACE_FUZZ_EXAMPLES=inputs for each test)
	TAILRACE_FUZZ_EXAMPLES=$${TAILRACE_FUZZ_EXAMPLES:-20000} $(BIN)/python -m pytest tests/fuzz --timeout=0

bench: env  ## Measure rows a second, rows per CPU-second and memory (DATABASE=name, ARGS=...)
	$(BIN)/python benchmarks/$(if $(filter postgres,$(DATABASE)),run,$(DATABASE)).py $(ARGS)

bench-snapshot: env  ## Measure a first snapshot beside COPY, pg_dump and the engine (ARGS=...)
	$(BIN)/python benchmarks/snapshot.py $(ARGS)

bench-compare: env  ## Measure everything beside the others, with the ratios that are the goals (ARGS=--quick)
	$(BIN)/python benchmarks/compare.py $(ARGS)

bench-kafka: env  ## Measure the Kafka sink with and without transactions (ARGS=...)
	$(BIN)/python benchmarks/kafka.py $(ARGS)

docs: env  ## Generate the pages of docs/reference
	$(BIN)/python tools/options_reference.py

lock: env  ## Generate requirements.lock again, with the newest versions that pyproject.toml allows
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile pyproject.toml --upgrade --universal --python-version 3.10 --extra demo --group dev \
	  --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --quiet --output-file requirements.lock

dist: env  ## Build wheel and sdist into dist/, check both, and install each into an empty environment
	@rm -rf dist build/tools build/empty
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install -q build twine
	build/tools/bin/python -m build --outdir dist
	build/tools/bin/python -m twine check --strict dist/*
	@for file in dist/*.whl dist/*.tar.gz; do set -e; echo "Installing $$file into an empty environment"; rm -rf build/empty; \
	  $(PYTHON) -m venv build/empty; build/empty/bin/python -m pip install -q --no-deps $$file; \
	  build/empty/bin/python tools/check_installed.py; done

clean:  ## Remove .venv, caches and the files that runs left behind
	rm -rf .venv .coverage .work build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db
