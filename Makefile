# dlperf_study: `make help` lists the targets.
STUDY   ?= quickstart
CLUSTER ?= local
MINUTES ?= 20

# An environment that is active is used. Without one, set-up makes .venv.
ENVIRONMENT := $(or $(VIRTUAL_ENV),$(CONDA_PREFIX))
PYTHON      := $(or $(ENVIRONMENT),.venv)/bin/python
READY       := $(if $(ENVIRONMENT),active-environment,.venv/.ready)
# $(call on,QUICK,--quick) is --quick if QUICK is set and not 0.
on           = $(if $(filter-out 0,$($(1))),$(2))
OPTIONS     := $(STUDY) --cluster $(CLUSTER) $(call on,QUICK,--quick)

# A misspelt variable is refused. A name like none of these is for the environment of the command.
VARIABLES := STUDY CLUSTER QUICK RERUN WAIT WATCH PAIRS IMAGES LAB TESTS WORKERS MINUTES PADDLE_INDEX TORCH_INDEX TENSORFLOW_INDEX
GIVEN     := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
UNKNOWN   := $(if $(filter 0,$(MAKELEVEL)),$(filter-out $(VARIABLES) PYTHON PYTHON_FOR_SETUP HOROVOD_%,$(GIVEN)))
REFUSED   := $(if $(UNKNOWN),$(shell python3 tools/make_variables.py '$(VARIABLES)' $(UNKNOWN)))
$(if $(REFUSED),$(error $(REFUSED)))

.DEFAULT_GOAL := help
.PHONY: tests help study plan selftest report paper data check-cluster lab torch dali gpu tensorflow horovod horovod-tensorflow \
  docs test test-all test-ci lint bench fuzz clean active-environment
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 28
	@echo "  variables                 STUDY=$(STUDY) CLUSTER=$(CLUSTER) QUICK=1 (quick mode: for a first look, not for publication)"

# Set-up stops if a different study measures on this machine.
study: export MEASURES_HERE := $(if $(call on,WAIT,1),,$(filter local,$(CLUSTER)))
study: $(READY) ## measure a study and build its report; RERUN=1 re-measures, WAIT=1 waits for others, WATCH=1 shows progress
	@$(PYTHON) -m dlperf_study run $(OPTIONS) $(call on,RERUN,--rerun) $(call on,WAIT,--wait) $(call on,WATCH,--watch)
plan: $(READY) ## list what a cluster can run of a study, and why not the rest; starts nothing
	@$(PYTHON) -m dlperf_study plan $(OPTIONS)
selftest: $(READY) ## test the instrument with known answers, about half an hour; QUICK=1: about 3 minutes
	@$(PYTHON) -m dlperf_study selftest $(call on,QUICK,--quick) $(if $(PAIRS),--pairs $(PAIRS))
report: $(READY) ## build the report again from the run records
	@$(PYTHON) -m dlperf_study report $(STUDY) $(call on,QUICK,--quick)
paper: $(READY) ## write a study's figures, tables and numbers as LaTeX for a paper
	@$(PYTHON) -m dlperf_study paper $(STUDY) $(call on,QUICK,--quick)
data: $(READY) ## make a small set of labelled photographs; IMAGES=folder examines that folder instead
	@$(PYTHON) -m dlperf_study make-data $(IMAGES)
check-cluster: $(READY) ## try everything that a run on a cluster needs, and list what is missing
	@$(PYTHON) -m dlperf_study check-cluster $(CLUSTER)
lab: $(READY) ## open the notebooks in JupyterLab
	@$(PYTHON) -m jupyterlab --notebook-dir=$(CURDIR) --LabApp.default_url=/lab/tree/notebooks/00_index.ipynb \
	  --ServerApp.contents_manager_class=tools.lab_contents.NotebooksAsInGit $(LAB)

torch: ## install PyTorch, for the studies that compare frameworks
dali: ## install DALI, 1 GB, for studies that read images with it
tensorflow: ## install TensorFlow, for its strategies and its parameter servers
horovod: ## install PyTorch, build Horovod for it, 2-5 minutes once, and check it
horovod-tensorflow: ## build Horovod for TensorFlow 2.15 in an environment of its own, 2-5 minutes once
torch dali tensorflow horovod horovod-tensorflow: $(READY)
	@$(PYTHON) -m tools.install $@
gpu: $(READY) ## install builds for GPUs: PADDLE_INDEX=address TORCH_INDEX=address TENSORFLOW_INDEX=default; remembered
	@$(PYTHON) -m tools.install gpu $(PADDLE_INDEX:%=paddle=%) $(TORCH_INDEX:%=torch=%) $(TENSORFLOW_INDEX:%=tensorflow=%)
docs: $(READY) ## build the pages of docs/ as a site with a search, build/docs; a broken link fails
	@$(PYTHON) -m tools.install docs && NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict && echo "docs: build/docs/index.html"

test: ## lint, check types and test what the default environment has; what is missing is skipped and listed
test-all: ## install PyTorch, Horovod and TensorFlow too, and test real training by every framework and launcher
test-ci: ## the rest of the tests: clusters, a browser, new environments, sharded models, injected faults; needs root
lint: ## lint and check types, and print the measures of each folder
tests:
	@echo "there is no target tests; did you mean test?" >&2; exit 2
test test-all test-ci lint: $(READY)
	@sh tools/test.sh $@ $(PYTHON) $(TESTS)
bench: $(READY) ## run the benchmarks: ratios measured side by side; about an hour on two cores
	@sh tools/bench.sh $(PYTHON)
fuzz: $(READY) ## feed damaged files to every reader for MINUTES=20; an input that crashes, hangs or takes 1 GB is kept
	@$(PYTHON) -m pip install -q --disable-pip-version-check atheris && $(PYTHON) -m tests.fuzzing $(MINUTES)

clean: ## remove the environment and the caches; outputs/ stays
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .fuzz build *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "clean: outputs/ is kept; delete it yourself if you need the run records no more"
active-environment:
	@sh tools/active_environment.sh $(PYTHON)
.venv/.ready: locks/main.txt pyproject.toml tools/setup.sh
	@sh tools/setup.sh
