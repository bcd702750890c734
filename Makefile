# Everything a person or CI runs here; `make help` lists it. Recipes need bash, make and Python 3.11 or newer with venv.
# ARGS goes to the command behind a target: make test ARGS='-k tape', make serve ARGS='--port 9000'.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
ARGS ?=
# Test processes: two for each core, because tests often wait for servers (three took longer); WORKERS=0 runs the tests
# in pytest's own process, as a debugger needs it, and so it is with -k, which selects few: each process reads all tests.
WORKERS ?= $(if $(filter -k%,$(ARGS)),0,$(shell echo $$((2 * $$($(PYTHON) -c 'import os; print(os.cpu_count())')))))
XDIST := --numprocesses=$(WORKERS) --maxprocesses=8 --dist=worksteal
# Where numbers are compared with recorded ones, and plans with the steps that they replace. The recorded programs are
# not among them: tests/conformance runs each with both kernels.
OTHER_KERNELS := -k 'not HTTP and not shell and not javascript and not mebibytes and not build_leaves and not source_compiles' tests/conformance/test_whole_programs.py tests/project/test_pages.py tests/engine/plans tests/fuzz/test_plans.py
IMAGE ?= teletape
EXTRAS ?= server,keras
BIN := .venv/bin
# Without -P, -m puts the working folder on sys.path, and engine/, wire/, client/ and server/ become importable.
MODULE := $(BIN)/python -P -m
# Stamps of what .venv holds: all that `make test` needs, what the demo needs of it, and what other tests need.
INSTALLED := .venv/.installed
DEMO_INSTALLED := .venv/.installed-demo
BROWSER_INSTALLED := .venv/.installed-browser
CLIENTS_INSTALLED := .venv/.installed-clients
PEERS_PIP := .venv/peers/bin/python -m pip --disable-pip-version-check install --quiet
PIP := $(MODULE) pip --disable-pip-version-check install --quiet --constraint constraints.txt

# Tests start hundreds of Python processes, and each would compile all modules anew where nothing keeps the result.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: adapters programs help install demo serve test conformance more test-kernels keras-tests fuzz simulate soak chaos durability restarts rivals flood contract sanitize laws bench bench-peers bench-check openapi reference layout pages browser-tools browser client-tools clients onnx-answers kernels gpu lint format constraints image clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1|\2/p' Makefile | while IFS='|' read -r name what; do printf '%-12s %s\n' "$$name" "$$what"; done

install: $(INSTALLED) ## make .venv with all that `make test` needs

# The stamps make a second call free; a .venv whose Python has gone is made anew.
$(INSTALLED) $(DEMO_INSTALLED): pyproject.toml constraints.txt hatch_build.py $(wildcard engine/teletape_engine/plans/run/c/*.[ch] engine/teletape_engine/arrays/*.[ch])
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found: install python3 (Debian: apt-get install python3 python3-venv), or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Teletape needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1): name another with make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) cannot make virtual environments: apt-get install python3-venv, then make again" >&2; exit 1; }
	@$(MODULE) pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python scripts/install.py $(if $(filter $@,$(INSTALLED)),dev,demo)
	@touch $(if $(filter $@,$(INSTALLED)),$(DEMO_INSTALLED)) $@

demo: $(DEMO_INSTALLED) ## train on handwritten digits through a server on loopback
	$(BIN)/python scripts/with_server.py $(BIN)/python examples/digits.py $(ARGS)

serve: $(INSTALLED) ## start a server (settings: ARGS, or TELETAPE_HOST, _PORT, _DEVICE, _API_KEYS)
	$(BIN)/teletape serve $(ARGS)

test: $(INSTALLED) ## run the tests; others: `make more`, `make browser`, `make clients`, `make keras-tests`, `make lint`
	$(MODULE) pytest -m 'not checkers and not more and not browser and not clients' $(XDIST) $(ARGS)

more: $(INSTALLED) ## run the cases that `make test` leaves out, because it runs others like them
	$(MODULE) pytest -m more $(XDIST) $(ARGS)

test-kernels: $(INSTALLED) ## run the examples, the pages and the plans in this process, with other kernels than this processor gets
	$(BIN)/python scripts/other_kernels.py $(MODULE) pytest -m 'not more' $(XDIST) $(OTHER_KERNELS) $(ARGS)

conformance: $(INSTALLED) ## run every recorded program in this process and over HTTP, where `make test` runs a choice over HTTP
	$(MODULE) pytest -m 'not checkers' $(XDIST) tests/conformance/test_conformance.py $(ARGS)

keras-tests: $(INSTALLED) ## run Keras's own tests on Teletape, and compare with TensorFlow: ARGS='--family rnn --http'
	$(BIN)/python -P tests/keras_suite/run.py $(ARGS)

fuzz: $(INSTALLED) ## look for inputs that break something: ARGS='--only ops --seconds 600 --seed 1'
	PYTHONPATH=tests:tests/server $(MODULE) fuzz $(ARGS)

programs: $(INSTALLED) ## draw random programs, and compare what they see in this process and over HTTP: N=2000
	TELETAPE_PROGRAMS=$(or $(N),2000) $(BIN)/python -P -m pytest -q --timeout=0 tests/sdk/remote/test_random_programs.py

simulate: $(INSTALLED) ## simulate servers, disks, networks and clients from seeds: SEEDS=10000, ARGS='--seed 80'
	PYTHONPATH=tests $(MODULE) simulation $(or $(SEEDS),1000) $(ARGS)

soak: $(INSTALLED) ## add over a lossy network while processes are killed, and compare: ARGS='--minutes 120'
	$(BIN)/python reliability/soak.py $(ARGS)

chaos: $(INSTALLED) ## kill sessions' processes and the server while programs train, and compare: ARGS='--kills 300'
	$(BIN)/python reliability/chaos.py $(ARGS)

durability: $(INSTALLED) ## measure what it costs to write sessions down, on the disk of a folder: ARGS='--folder /var/tmp'
	$(BIN)/python reliability/durability.py $(ARGS)

restarts: $(INSTALLED) ## measure how quickly a server and its sessions are back, on the disk of a folder: ARGS='--folder /var/tmp'
	$(BIN)/python reliability/restarts.py $(ARGS)

rivals: $(INSTALLED) ## one key floods a server, another one works on: with control groups and without: ARGS='--only uploads'
	$(BIN)/python reliability/rivals.py $(ARGS)

flood: $(INSTALLED) ## send requests without end, and half requests, and watch how quickly others are answered
	$(BIN)/python reliability/flood.py $(ARGS)

contract: $(INSTALLED) ## send random requests, and compare the answers with the OpenAPI document: ARGS='--max-examples 50'
	$(BIN)/python reliability/contract.py $(ARGS)

sanitize: $(INSTALLED) ## run plans and kernels with their C libraries compiled for the address and the thread sanitizer
	$(BIN)/python -P reliability/sanitize.py $(ARGS)

laws: $(INSTALLED) ## check every op by every law on more inputs than the tests: ARGS='--variations 20 --only qr'
	$(BIN)/python -P reliability/laws.py $(ARGS)

bench: $(INSTALLED) ## measure every row in turn with the peers: ARGS='--only chain --quick'
	$(BIN)/python benchmarks/run.py $(ARGS)

bench-peers: $(INSTALLED) ## install the systems that `make bench` compares with (see benchmarks/peers.txt: gigabytes)
	$(BIN)/python -m venv .venv/peers
	$(PEERS_PIP) --requirement benchmarks/peers.txt

bench-check: $(INSTALLED) ## compare the speed of two commits: ARGS='main . --only chain --pairs 40'
	$(BIN)/python benchmarks/compare.py $(ARGS)

openapi: $(INSTALLED) ## export openapi/openapi.json
	$(BIN)/python scripts/openapi_document.py $(ARGS)

reference: $(INSTALLED) ## write docs/reference.md, derived functions, stubs, and the service client's methods
	$(BIN)/python scripts/functions.py $(ARGS)
	$(BIN)/python scripts/reference.py $(ARGS)

layout: $(INSTALLED) ## write the layout in docs/design.md from the packages' docstrings
	$(BIN)/python scripts/layout.py $(ARGS)

pages: $(INSTALLED) ## run the programs of the pages and write what they print; write the generated pages
	$(BIN)/python scripts/protocol.py $(ARGS)
	$(BIN)/python scripts/compatibility.py $(ARGS)
	$(BIN)/python scripts/pages.py $(ARGS)

browser-tools: $(BROWSER_INSTALLED) ## install Playwright and Chromium

$(BROWSER_INSTALLED): $(INSTALLED)
	$(BIN)/python scripts/install.py browser
	@command -v chromium-headless-shell chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell; } || { echo "make: no chromium, and it could not be installed: apt-get install chromium-headless-shell as root, then make browser" >&2; exit 1; }
	@touch $@

browser: browser-tools ## install them, then run the tests of pages in a browser
	$(MODULE) pytest -m browser --require=browser $(ARGS)

client-tools: $(CLIENTS_INSTALLED) ## install clients of other projects, and generators of clients (npm and pip)

$(CLIENTS_INSTALLED): $(INSTALLED) $(wildcard tests/server/clients/package-lock.json tests/server/clients/requirements.txt)
	@command -v npm >/dev/null || { echo "make: npm not found: install Node.js 18 or newer (Debian: apt-get install nodejs npm), then make clients" >&2; exit 1; }
	cd tests/server/clients && npm ci --no-audit --no-fund --loglevel=error
	$(BIN)/python -m venv --without-pip .venv/clients
	$(BIN)/python scripts/install.py --into .venv/clients tests/server/clients/requirements.txt
	@touch $@

clients: client-tools ## install them, then run the tests of clients
	$(MODULE) pytest -m clients --require=clients $(ARGS)

onnx-answers: $(INSTALLED) ## record what ONNX Runtime and PyTorch answer to ONNX graphs (installs them: gigabytes)
	$(BIN)/python -m venv .venv/onnx
	.venv/onnx/bin/python -m pip --disable-pip-version-check install --quiet --requirement tests/sdk/onnx_models/requirements.txt
	PYTHONPATH=tests/sdk .venv/onnx/bin/python tests/sdk/onnx_models/record.py
	.venv/onnx/bin/python tests/sdk/onnx_models/export.py

kernels: $(INSTALLED) ## compile the kernels of plans on a GPU, and compare names with CuPy (installs CuPy and NVRTC; needs no GPU)
	$(PIP) --no-deps --upgrade --target .venv/kernels cupy-cuda13x nvidia-cuda-nvrtc cuda-pathfinder
	LD_LIBRARY_PATH=.venv/kernels/nvidia/cu13/lib PYTHONPATH=.venv/kernels $(MODULE) pytest -m cupy --require=cupy $(ARGS)

adapters: $(INSTALLED) ## install PyTorch, JAX and PyMC (gigabytes), and run the tests of the adapters to other libraries, and of theirs to this
	$(PIP) --upgrade --target .venv/adapters torch jax pymc tesseract-torch
	PYTHONPATH=.venv/adapters $(BIN)/python -c 'import torch, jax, pymc, tesseract_torch'
	PYTHONPATH=.venv/adapters $(MODULE) pytest tests/sdk/adapters tests/server/published/test_tesseract.py $(ARGS)

gpu: $(INSTALLED) ## on a machine with a GPU: the tests that need one, then benchmarks; JSON, and the dated part of docs/gpu.md
	PYTHONPATH=benchmarks$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -P -m gpu $(ARGS)

lint: $(INSTALLED) ## check style, types and who imports whom, and what type checkers see of programs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/shellcheck .ci/run
	$(BIN)/mypy
	$(MODULE) pytest -m checkers --timeout=0 $$(grep -rl --include='test_*.py' mark.checkers tests) $(ARGS)

format: $(INSTALLED) ## lay out the code, and mend what ruff can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

constraints: $(INSTALLED) ## resolve all extras anew into constraints.txt
	$(BIN)/python scripts/constraints.py

image: ## build the server's image (GPU: make image IMAGE=teletape:gpu EXTRAS=server,keras,gpu)
	docker build --build-arg EXTRAS=$(EXTRAS) --tag $(IMAGE) $(ARGS) .

clean: ## remove what the other targets made
	rm -rf .venv tests/server/clients/node_modules .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
