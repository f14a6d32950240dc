# dlperf_study: `make help` lists the targets.
STUDY   ?= quickstart
CLUSTER ?= local
QUICK   ?=
AGAIN   ?=
# How many pairs the self-test measures; without a number as many as it says.
PAIRS   ?=

# An environment that is active is used as it is; without one, .venv is made from the lock file.
ENVIRONMENT := $(or $(VIRTUAL_ENV),$(CONDA_PREFIX))
PYTHON      := $(or $(ENVIRONMENT),.venv)/bin/python
READY       := $(if $(ENVIRONMENT),active-environment,.venv/.ready)
CHECK        = $(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check -q . && $(PYTHON) -m mypy dlperf_study && $(PYTHON) -m tools.code_style
# Tests that share a group, and those that train, go to one worker; see tests/tiers.py.
# Some wait for what others compute, and more workers only slow each other down.
WORKERS     ?= $(shell echo $$((2 * $$(nproc))))
PARALLEL     = --numprocesses=$(WORKERS) --maxprocesses=8 --no-loadscope-reorder
# How long each test took: the slowest at the end, all of them in this file.
RECORD      := --durations=25 --junitxml=.pytest_cache/durations.xml
# Not among the pinned libraries: nothing but `make fuzz` needs it, and it has wheels for few versions of Python.
FUZZER      := atheris
MINUTES     ?= 20
OPTIONS     := $(STUDY) --cluster $(CLUSTER) $(if $(filter-out 0,$(QUICK)),--quick)

# A misspelt variable is refused; one that is like none of these is for a command, in its environment, as are those of Horovod.
# A make that calls this one passes on its own variables.
VARIABLES := STUDY CLUSTER QUICK AGAIN WAIT WATCH PAIRS IMAGES LAB TESTS WORKERS MINUTES PADDLE_INDEX TORCH_INDEX TENSORFLOW_INDEX
GIVEN      = $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
CLOSEST    = import difflib, sys; name, *names = sys.argv[1:]; print(*difflib.get_close_matches(name.upper(), names, 1))
REFUSE     = $(if $(2),$(error there is no variable $(1); did you mean $(2)? The variables are $(VARIABLES)),\
  $(warning there is no variable $(1): it changes nothing but the environment of the command))
ifeq ($(MAKELEVEL),0)
$(foreach name,$(filter-out $(VARIABLES) PYTHON HOROVOD_%,$(GIVEN)),\
  $(call REFUSE,$(name),$(shell python3 -c '$(CLOSEST)' '$(name)' $(VARIABLES) 2>/dev/null)))
endif

.DEFAULT_GOAL := help
.PHONY: help study plan selftest report paper data check-cluster lab torch dali gpu tensorflow horovod horovod-tensorflow docs test test-fast lint bench fuzz clean active-environment

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22
	@echo "  variables           STUDY=$(STUDY) CLUSTER=$(CLUSTER) QUICK=1 (quick mode: a first look, not for publication)"

# For the set-up: whether this machine is what is measured, and nothing waits until it is free.
study: export MEASURES_HERE := $(if $(filter-out 0,$(WAIT)),,$(filter local,$(CLUSTER)))
study: $(READY) ## measure a study and build its report; AGAIN=1 measures anew and keeps the last one, WAIT=1 waits for others, WATCH=1 shows what is known so far
	@$(PYTHON) -m dlperf_study study $(OPTIONS) $(if $(filter-out 0,$(AGAIN)),--again) $(if $(filter-out 0,$(WAIT)),--wait) \
	  $(if $(filter-out 0,$(WATCH)),--watch)

plan: $(READY) ## list what of a study a cluster can run, and why not the rest; starts nothing
	@$(PYTHON) -m dlperf_study plan $(OPTIONS)

selftest: $(READY) ## test the instrument with known answers, about half an hour; QUICK=1: about 3 minutes
	@$(PYTHON) -m dlperf_study selftest $(if $(filter-out 0,$(QUICK)),--quick) $(if $(PAIRS),--pairs $(PAIRS))

report: $(READY) ## build the report again from the evidence there is
	@$(PYTHON) -m dlperf_study report $(OPTIONS)

paper: $(READY) ## write a study's figures, tables and numbers as LaTeX for a paper
	@$(PYTHON) -m dlperf_study paper $(STUDY) $(if $(filter-out 0,$(QUICK)),--quick)

data: $(READY) ## make a small set of labelled photographs; IMAGES=folder examines that one instead
	@$(PYTHON) -m dlperf_study data $(IMAGES)

check-cluster: $(READY) ## try everything a run on a cluster needs, and say what is missing
	@$(PYTHON) -m dlperf_study check $(CLUSTER)

lab: $(READY) ## open the notebooks in JupyterLab
	@$(PYTHON) -m jupyterlab --notebook-dir=$(CURDIR) --LabApp.default_url=/lab/tree/notebooks/index.ipynb \
	  --ServerApp.contents_manager_class=tools.lab_contents.NotebooksAsInGit $(LAB)

torch: $(READY) ## install PyTorch, for the studies that compare frameworks
	@$(PYTHON) -m tools.install_torch

dali: $(READY) ## install DALI, 1 GB, for studies that read images with it
	@$(PYTHON) -m tools.install_dali

gpu: $(READY) ## install libraries for GPUs: PADDLE_INDEX=address TORCH_INDEX=address TENSORFLOW_INDEX=default; remembered
	@$(PYTHON) -m tools.install_gpu $(if $(PADDLE_INDEX),paddle=$(PADDLE_INDEX)) $(if $(TORCH_INDEX),torch=$(TORCH_INDEX)) \
		$(if $(TENSORFLOW_INDEX),tensorflow=$(TENSORFLOW_INDEX))

tensorflow: $(READY) ## install TensorFlow, for its strategies and its parameter servers
	@$(PYTHON) -m tools.install_tensorflow

horovod: torch ## build Horovod for that PyTorch, 2-5 minutes once, and check it
	@$(PYTHON) -m tools.install_horovod

horovod-tensorflow: $(READY) ## build Horovod for TensorFlow 2.15 in an environment of its own, 2-5 minutes once
	@$(PYTHON) -m tools.install_horovod_tensorflow

# The theme says at every build what will become of MkDocs.
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(READY) ## build the pages of docs/ as a site with a search, build/docs; a link that leads nowhere fails
	@$(PYTHON) -m tools.install_docs
	@$(PYTHON) -m mkdocs build --strict
	@echo "docs: build/docs/index.html"

# What all workers import is compiled once, and kept for what they start.
test test-fast: export PYTHONDONTWRITEBYTECODE :=
test: $(READY) ## lint, type-check and run all tests; what this machine can't run is skipped and listed
	@$(PYTHON) -m pytest --collect-only -qq $(TESTS) >/dev/null 2>&1 & { $(CHECK) >/dev/null; }; checked=$$?; wait; exit $$checked
	@$(PYTHON) -m tools.install_torch && $(PYTHON) -m tools.install_horovod && $(PYTHON) -m tools.install_tensorflow \
		|| echo "make test: goes on; the tests of what is not installed are skipped" >&2
	@$(PYTHON) -m pytest $(PARALLEL) $(RECORD) $(TESTS); outcome=$$?; test $$outcome -eq 1 || exit $$outcome; \
		echo "make test: what failed runs once more, with no other test beside it" >&2; \
		$(PYTHON) -m pytest --last-failed --last-failed-no-failures none -rpf $(TESTS) && \
		echo "make test: the tests above passed alone and had failed beside others: find out what they wait for" >&2

# None of these waits for what others compute.
test-fast: WORKERS = $(shell nproc)
test-fast: $(READY) ## the tests for the daily loop, about three minutes on two cores: no training, no cluster, no browser
	@$(PYTHON) -m pytest $(PARALLEL) -m "not slow and not cluster and not browser" $(TESTS)

lint: $(READY) ## lint and type-check, and print how each room reads beside its limits
	@$(CHECK)

bench: $(READY) ## run the benchmarks: ratios measured side by side, and what large studies cost
	@missed=; for name in $(basename $(notdir $(wildcard benchmarks/[a-z]*.py))); do \
		echo "== benchmarks/$$name.py"; $(PYTHON) -m benchmarks.$$name || missed="$$missed $$name"; done; \
		test -z "$$missed" || { echo "beyond their limit:$$missed" >&2; exit 1; }

fuzz: $(READY) ## feed damaged files to every reader for MINUTES=20; an input that crashes, hangs or takes 1 GB is kept
	@$(PYTHON) -m pip install -q --disable-pip-version-check $(FUZZER)
	@$(PYTHON) -m tests.fuzzing $(MINUTES)

clean: ## remove the environment and the caches; outputs/ stays
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz build *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "clean: outputs/ is kept; delete it yourself if the evidence is no longer needed"

active-environment:
	@$(PYTHON) -c 'import dlperf_study, papermill' 2>/dev/null || { echo "the active environment $(ENVIRONMENT) \
	can't run this project: install it there (pip install -r requirements.lock && pip install --no-deps -e .), \
	or deactivate it and let make set up .venv" >&2; exit 1; }

.venv/.ready: requirements.lock pyproject.toml tools/setup.sh
	@sh tools/setup.sh
