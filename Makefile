# Python 3.11+ and Java 17+ are all that must be there; every target sets up what is missing first.
# QUOTA_PROXY_BUILD=auto|quick|pure|require|instrumented|profiled says whether and how the pure rings are compiled (see setup.py).

VENV := .venv
PYTHON := $(VENV)/bin/python
export QUOTA_PROXY_BUILD ?= auto
# Where the user sets this, each of the many processes that tests start would compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

RINGS := $(shell sed -n 's/^compiled = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d '",')
ifeq ($(RINGS),)
$(error pyproject.toml names no rings to compile, or on more than one line)
endif
RING_SOURCES := $(shell find $(RINGS) -name '*.py')
# Files in .venv say what is done: the project and its tools, then also what only the pipeline, benchmarks and fuzzing
# need, the build of the rings in each mode that it answers, Spark's packages, and Java's classes.
INSTALLED := $(VENV)/.installed
COMPLETE := $(VENV)/.complete
BUILT := $(VENV)/.built
FETCHED := $(VENV)/.spark
ARCHIVE := $(VENV)/.archive

FAST_TESTS := tests/unit tests/relay tests/property tests/fuzz
# What runs the compiled files and little else: only these tests can tell the two builds apart. What generates bytes
# runs on both builds, unless it tests interpreted files. Simulations, whose rules are in the rings, run compiled.
COMPILED_TESTS := tests/relay tests/unit/proxy/wire tests/unit/proxy/quota tests/unit/proxy/relay \
	tests/unit/proxy/server/connection
INTERPRETED_TESTS := tests/property/test_config_messages.py tests/property/test_quota_store_history.py
SIMULATIONS := $(addprefix tests/property/,test_fair_share.py test_fetch_sessions.py test_limits.py test_rates.py \
	test_replication_plans.py test_shared_averages.py test_shared_request_time.py test_shared_windows.py \
	test_sharing.py test_sharing_faults.py)
RING_TESTS := tests/property tests/fuzz $(COMPILED_TESTS) $(addprefix --ignore=,$(INTERPRETED_TESTS))
COPIED_TESTS := $(filter-out $(COMPILED_TESTS),$(FAST_TESTS)) \
	$(addprefix --ignore=,$(filter-out $(FAST_TESTS),$(COMPILED_TESTS)) $(SIMULATIONS))
# With this path a process that a test starts in another folder imports the copy, too.
IN_COPY = cd build/pure && PYTHONPATH=$(CURDIR)/build/pure $(PRIORITY) ../../$(PYTHON) -m
# What takes longest goes before the rest, so that all end at about the same time and no core is idle: first the
# pipeline's tests, which use one core nearly all the time, then the integration tests, then the unit tests, of which
# each run uses a core: none of them may be left alone at the end.
LONGEST := nice -n 2
LONG := nice -n 7
MEDIUM := nice -n 7
SHORT := nice -n 11
# On Linux, what runs so gives way to everything else.
IDLE = $(shell chrt --idle 0 true 2>/dev/null && echo chrt --idle 0 || echo nice -n 19)
test-copy: PRIORITY := $(MEDIUM)
test-compiled: PRIORITY := $(SHORT)
# Each worker has Kafkas of its own. Three keep two cores busy, for most tests wait most of the time.
WORKERS ?= 3
# Of `make fuzz`, for each target.
FUZZ_SECONDS ?= 30

.PHONY: help setup rings kafka spark archive demo test lint format compiled profiled pure copy-sources test-copy test-pure test-compiled
.PHONY: test-pipeline pipeline-copy integration integration-untimed integration-timed
.PHONY: fuzz fuzz-briefly coverage interop bench soak docs lock image clean
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: rings kafka spark archive ## Make .venv with the project and its tools, and fetch Apache Kafka

rings: $(BUILT)-$(QUOTA_PROXY_BUILD)

kafka: $(INSTALLED)
	@$(PYTHON) -m proxy.demo.prepare

spark: $(FETCHED)

# `make test` does not wait for it.
archive: $(ARCHIVE)

demo: $(VENV)/.demo ## Show throttled tenants on a real Kafka; KEEP=1 leaves it running to play with
	@$(VENV)/bin/quota-proxy demo $(if $(KEEP),--keep)

# What needs no quiet machine runs side by side, the longest first; what measures a real flow runs after it. The flow
# leaves a part of the machine idle, for what takes a minute or less and gives way to everything else.
# What runs while the rings are being compiled runs in a copy of the sources. Only COPIED_TESTS run on both builds.
SIDE_BY_SIDE_MAKE = $(MAKE) --no-print-directory SIDE_BY_SIDE=1 --jobs=4 --output-sync=target --keep-going
test: export QUOTA_PROXY_BUILD := $(QUOTA_PROXY_BUILD:auto=quick)
test: $(INSTALLED) copy-sources ## Run every check and every test
	@failed=0; \
	if $(COMPILES); then tests='$(COPIED_TESTS)'; else tests='$(FAST_TESTS)'; fi; \
	$(SIDE_BY_SIDE_MAKE) "COPIED_TESTS=$$tests tests/pipeline -m 'not shared'" PIPELINE=shared \
		integration-untimed pipeline-copy test-copy test-compiled || failed=1; \
	$(SIDE_BY_SIDE_MAKE) PRIORITY='$(IDLE)' integration-timed lint fuzz-briefly || failed=1; \
	exit $$failed

# mypy and mypyc cannot open one cache at the same moment (sqlite: "database is locked").
lint: $(COMPLETE) ## Check style, types and imports
	$(PRIORITY) $(VENV)/bin/ruff check
	$(PRIORITY) $(VENV)/bin/ruff format --check
	$(PRIORITY) $(VENV)/bin/mypy --cache-dir .mypy_cache/lint --show-traceback
	$(PRIORITY) $(VENV)/bin/lint-imports

format: $(INSTALLED) ## Correct the style
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

compiled: ## Compile the pure rings in place
	@$(MAKE) --no-print-directory QUOTA_PROXY_BUILD=require $(BUILT)-require

# GCC arranges code better if it knows which branches a load takes: see bench/training.py.
profiled: $(BUILT)-profiled ## Compile the pure rings in place for the load of a proxy, as the image has them (needs GCC)

pure: ## Remove the compiled rings: the sources run as they are
	@$(MAKE) --no-print-directory QUOTA_PROXY_BUILD=pure $(BUILT)-pure

# Python prefers a compiled module to its source, so the sources are tested in a copy without compiled modules.
copy-sources:
	@rm -rf build/pure && mkdir -p build/pure
	@tar -cf - --exclude='*.so' --exclude=./.venv --exclude=./.git --exclude=./build . | tar -xf - -C build/pure

test-copy: $(COMPLETE)
	$(IN_COPY) pytest $(COPIED_TESTS)

test-pure: COPIED_TESTS := $(FAST_TESTS)
test-pure: copy-sources test-copy ## Run the unit, relay and property tests on the interpreted rings

test-compiled: rings $(COMPLETE) ## Run those tests that exercise the rings on the compiled rings
	@if ! $(COMPILES); then \
		echo "The compiled rings are not tested: QUOTA_PROXY_BUILD is pure, or there is no C compiler with" \
			"Python's headers"; \
	elif $(ARE_PURE); then \
		echo "The rings do not compile: make compiled says why" >&2; exit 1; \
	else \
		set -x; $(PRIORITY) $(PYTHON) -m pytest $(RING_TESTS); \
	fi

test-pipeline: kafka copy-sources pipeline-copy ## Run the pipeline's tests, on Spark

# Where PIPELINE is `shared`, only those that take the Spark session or the Kafka that the tests share; test-copy runs the
# rest, which take a tenth of the time.
pipeline-copy: PRIORITY := $(LONGEST)
pipeline-copy: kafka spark
	$(IN_COPY) pytest tests/pipeline -m "not timed$(PIPELINE:%= and %)"

integration: integration-untimed integration-timed ## Run the tests on a real Kafka

integration-untimed: rings kafka $(COMPLETE)
	$(LONG) $(PYTHON) -m pytest tests/integration -m "not timed" --numprocesses=$(WORKERS) --no-loadscope-reorder

# Three lanes (tests/integration/conftest.py), each of which uses less than half a core. Each process would otherwise
# import all test files to find the few that have timed tests.
integration-timed: rings kafka $(COMPLETE)
	$(PYTHON) -m pytest $$(grep -rl --include='test_*.py' 'mark\.timed' tests/integration tests/pipeline) -m timed \
		--numprocesses=3 --no-loadscope-reorder

# Coverage guides the fuzzer on the interpreted sources only. The compiled ones get mutations of the same inputs.
fuzz: setup copy-sources ## Fuzz what parses bytes and files, FUZZ_SECONDS for each target
	$(IN_COPY) tests.fuzz --seconds $(FUZZ_SECONDS) --found $(CURDIR)/build/fuzz
	@if $(ARE_PURE); then echo "The compiled rings are not fuzzed: they are not compiled"; \
	else set -x; $(PYTHON) -m tests.fuzz --seconds $(FUZZ_SECONDS) --mutate; fi

fuzz-briefly: $(COMPLETE)
	$(IN_COPY) tests.fuzz --seconds 3

# Coverage cannot measure compiled modules, so this runs in the copy. It runs the tests that need neither a Kafka nor a
# quiet machine, so it also lists files that only tests on real brokers cover.
LEAST := 80
coverage: $(COMPLETE) copy-sources ## List the files with a line coverage below LEAST (80) %, and the lines
	$(IN_COPY) pytest $(FAST_TESTS) --cov --cov-report=
	$(IN_COPY) pytest tests/pipeline -m "not timed and not kafka" --cov --cov-append --cov-report=
	@$(IN_COPY) coverage json -q -o - | ../../$(PYTHON) -m tests.support.coverage_gaps $(LEAST)

interop: setup ## Run clients of other languages, if their tools (node and npm, go, kcat) are installed
	@$(PYTHON) -m tests.interop.run

# What users run is measured: the rings as the image has them.
bench: setup ## Measure what the proxy costs, as ratios, into bench/results
	@if $(HAS_GCC); then $(MAKE) --no-print-directory profiled; fi
	@$(PYTHON) -m bench

soak: setup ## Run the proxy for hours under faults; a second run continues the first
	@$(PYTHON) -m bench.soak

# Without the options that name an index: the files hold for each.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade

# The site's tools have an environment of their own: nothing else needs them.
docs: ## Build the documentation as a site into build/site
	@set -eu; $(FIND_PYTHON); "$$python" -m venv build/docs-venv
	@build/docs-venv/bin/pip install -qq --upgrade pip
	@build/docs-venv/bin/pip install -qq --group docs
	@build/docs-venv/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html"

lock: ## Lock the dependencies of users' installations again (needs uv)
	$(LOCK) pyproject.toml -o requirements/proxy.txt
	$(LOCK) pyproject.toml --extra pipeline -o requirements/pipeline.txt
	echo 'setuptools>=77' | $(LOCK) pyproject.toml --extra demo - -o requirements/demo.txt
	echo jgo | $(LOCK) - -c requirements/demo.txt -o requirements/fetch.txt

image: ## Build the container image with docker or podman
	$$(command -v docker || command -v podman || echo docker) build --tag quota-proxy .

clean: ## Remove what was built in the tree, but neither .venv nor the fetched Kafka
	rm -rf build bench/results .hypothesis .mypy_cache .ruff_cache .import_linter_cache $(BUILT)-*
	find . -path ./$(VENV) -prune -o \( -name '*.so' -o -name __pycache__ \) -exec rm -rf {} +

# Runs a Python of at least 3.11 as "$$python".
define FIND_PYTHON
	for python in $${BASE_PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 none; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi; \
	done; \
	if [ "$$python" = none ]; then \
		echo "Python 3.11 or newer is needed, and python3 is $$(python3 --version 2>/dev/null || echo missing):" \
			"install one (Debian and Ubuntu: apt install python3 python3-venv; macOS: brew install python)" \
			"or name it in BASE_PYTHON" >&2; \
		exit 1; \
	fi
endef

# The demo needs neither the tools nor Spark, and runs interpreted. `make setup` adds the rest to the same .venv.
$(VENV)/.demo: requirements/demo.txt pyproject.toml
	@set -eu; \
	if [ -e $(INSTALLED) ]; then \
		$(MAKE) --no-print-directory setup; \
	else \
		$(FIND_PYTHON); \
		echo "Setting up the demo, once"; \
		QUOTA_PROXY_BUILD=pure "$$python" -m proxy.demo.environment $(VENV); \
	fi
	@touch $@

# What the compiler of the rings and Kafka's jars wait for is installed first: while these keep the processor and the
# network busy, pip installs the rest, which is ten times as large. `--group` takes a pip of 2025. To compile all
# modules, most of which nothing imports, takes a third of the installation. Only what the commands import is compiled:
# where PYTHONDONTWRITEBYTECODE is set, Python would compile it again at each start, and a start would take twice as
# long.
COMMAND_MODULES := proxy.cli.main proxy.cli.serve proxy.server.app proxy.server.admin_port.site proxy.store.sharing.shares_topic \
	proxy.store.quota_topic proxy.server.workers.site proxy.server.workers.supervisor proxy.server.workers.pages \
	proxy.cli.quotas.entity_commands proxy.cli.quotas.file_commands proxy.cli.quotas.cluster.audit_log \
	proxy.cli.explain proxy.cli.top rich.live
# Java is looked for before anything large is fetched.
$(INSTALLED): pyproject.toml setup.py
	@set -eu; \
	$(FIND_PYTHON); \
	"$$python" -m proxy.demo.kafka.java; \
	echo "Installing the project and its tools into $(VENV)"; \
	$(PYTHON) -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear $(VENV)
	@$(PYTHON) -m pip install -qq --upgrade pip 'setuptools>=77'
	@# Extensions of older sources do not fit the modules that are imported below.
	@$(REMOVE_RINGS)
	@QUOTA_PROXY_BUILD=pure $(PYTHON) -m pip install -qq --no-compile --editable '.[demo]' --group dev
	@$(PYTHON) -c 'import importlib, sys; from proxy.cli.libraries import import_kio; \
		import_kio(); [importlib.import_module(name) for name in sys.argv[1:]]' $(COMMAND_MODULES)
	@rm -f $(BUILT)-* $(COMPLETE) $(FETCHED)
	@touch $@

# Not as '.[pipeline]': pip may be installing the project with compiled rings at the same time.
PIPELINE_PACKAGES := import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["pipeline"], sep="\n")
$(COMPLETE): $(INSTALLED)
	@echo "Installing Spark and other large packages"
	@$(PYTHON) -c '$(PIPELINE_PACKAGES)' >$(VENV)/pipeline.txt
	@$(PYTHON) -m pip install -qq --no-compile --requirement $(VENV)/pipeline.txt --group bench
	@$(PYTHON) -m pip install -qq --no-compile --only-binary :all: --group fuzz 2>/dev/null || \
		echo "There is no atheris for this platform: make fuzz runs without guidance by coverage"
	@touch $@

# The first job that needs the packages would fetch them, too, but a test would have to wait for the network.
$(FETCHED): $(COMPLETE)
	@echo "Fetching Spark's Kafka source from Maven Central"
	@$(PYTHON) -m pipeline.spark.session >$(VENV)/spark.log 2>&1 || { cat $(VENV)/spark.log >&2; exit 1; }
	@touch $@

# Jobs run without it, too, so that a failure is no failure of the setup. The next setup tries again.
$(ARCHIVE): $(FETCHED)
	@echo "Writing an archive of Java's classes, with which jobs of the pipeline start in less time"
	@if $(PYTHON) -m pipeline.cli.process prepare >$(VENV)/archive.log 2>&1; then touch $@; \
	else echo "There is no archive: see $(VENV)/archive.log" >&2; fi

# Uses the tools in .venv instead of fetching them each time. setup.py marks the extensions as optional, and they need
# each other, so importing all of them shows whether they were built.
INSTALL_RINGS := $(PYTHON) -m pip install -qq --no-deps --no-build-isolation --editable .
IMPORT_RINGS := $(PYTHON) -c 'import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]' \
	$(subst /,.,$(patsubst %/__init__,%,$(basename $(RING_SOURCES))))
HAS_COMPILER := $(PYTHON) -c 'import setup, sys; sys.exit(not setup.has_compiler())'
HAS_GCC := $(PYTHON) -c 'import setup, sys; sys.exit(not setup.has_gcc())'
COMPILES := [ $(QUOTA_PROXY_BUILD) != pure ] && $(HAS_COMPILER)
ARE_PURE := [ -z "$$(find proxy -name '*.so')" ]
REMOVE_RINGS := find . -path ./$(VENV) -prune -o -name '*.so' -exec rm -f {} +

$(BUILT)-profiled: $(INSTALLED) $(COMPLETE) $(RING_SOURCES)
	@rm -f $(BUILT)-*
	@$(REMOVE_RINGS)
	@rm -rf build/profile
	@echo "Compiling the pure rings, to count which branches a load takes"
	@QUOTA_PROXY_BUILD=instrumented $(INSTALL_RINGS)
	@$(PYTHON) -m bench.training
	@$(REMOVE_RINGS)
	@echo "Compiling the pure rings again, by these counts"
	@QUOTA_PROXY_BUILD=profiled $(INSTALL_RINGS)
	@$(IMPORT_RINGS)
	@# From another folder, where only the installation is found.
	@cd / && $(CURDIR)/$(VENV)/bin/quota-proxy version
	@touch $(addprefix $(BUILT)-,auto quick require profiled)

$(BUILT)-%: $(INSTALLED) $(RING_SOURCES)
	@rm -f $(BUILT)-*
	@$(REMOVE_RINGS)
	@set -eu; \
	build=$*; \
	if [ $$build != require ] && ! $(HAS_COMPILER); then build=pure; fi; \
	if [ $$build != pure ]; then echo "Compiling the pure rings"; fi; \
	if ! { QUOTA_PROXY_BUILD=$$build $(INSTALL_RINGS) && $(IMPORT_RINGS); }; then \
		if [ $* = require ]; then exit 1; fi; \
		$(REMOVE_RINGS); \
		QUOTA_PROXY_BUILD=pure $(INSTALL_RINGS); \
	fi; \
	if [ $* != pure ] && $(ARE_PURE); then \
		echo "The pure rings run interpreted, slower, for want of a C compiler with Python's headers"; \
	fi
	@if $(ARE_PURE) || [ $* = quick ]; then touch $@; else touch $(addprefix $(BUILT)-,auto quick require); fi
