# Needs python3.11 (or another python3 >= 3.11) and make; everything else goes into $(VENV).
#
#   make test            lint, types, layers, docs, then the tests
#   make test-browser    the tests of the explorer in Chromium, which it installs if it can
#   make test-full       all tests, the slow ones too
#   make demo            the demonstration, into demo/
#   make docs            the documentation, into build/docs/
#   make lint            the static checks: ruff, basedpyright, import-linter
#   make format          let ruff fix and format in place
#   make bench-numerics  accuracy and speed of the numerics
#   make bench-fit       speed of training, beside PyTorch, which it installs into $(VENV)
#   make bench-quality   held-out scores on the real data of DATA, an hour and a half
#   make bench-mappings  each mapping alone and a stacked mixture of them, on DATA, half an hour
#   make bench-claims    the paper's claims on the real data of DATA, ten minutes
#   make bench-studies   the paper's two studies, on shipped data and on DATA, forty minutes
#   make bench-reasons   what moves those figures of the studies that are not reached, 20 minutes
#   make bench-sources   coverage of θ when sources are missing, alike or noise, half an hour
#   make bench-architectures  what readers of images, series and items learn, five minutes
#   make bench-truth     coverage of the known truth on 20 simulated districts, ten minutes
#   make bench-infer     speed of samplers beside NumPyro, on the counties of DATA
#   make bench-structure what mixtures, states and years are worth on the counties of DATA, half an hour
#   make bench-calibration  simulation-based calibration of each structure, twenty minutes
#   make bench-plan      what surveys by plan gain beside other ways, on districts and counties of DATA
#   make bench-peers     held-out scores and speed beside other packages, on DATA, some hours
#   make lock            renew constraints.txt (UPGRADE=1: to the newest versions)
#   make lock-peers      renew bench/peers-constraints.txt in the same way
#   make clean           remove what the targets above made, $(VENV) too

VENV ?= .venv
DATA ?= ../shared/data
PYTHON ?= $(shell command -v python3.11 || command -v python3)

BIN := $(VENV)/bin
DEPENDENCIES := $(VENV)/.dependencies-installed
STAMP := $(VENV)/.installed
TORCH := $(VENV)/.torch-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
CPU := JAX_PLATFORMS=cpu
QUICK := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false \
  --xla_cpu_parallel_codegen_split_count=1"
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
LOCK_VENV := build/lock-venv
UV := $(LOCK_VENV)/bin/uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
  --generate-hashes --no-emit-index-url --no-header --no-annotate $(if $(UPGRADE),--upgrade)
PEERS_VENV := build/peers-venv
PEERS := $(PEERS_VENV)/.installed
PEERS_PIP := $(PEERS_VENV)/bin/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.PHONY: install chromium test test-browser test-full demo docs lint format bench-numerics bench-fit bench-quality \
  bench-mappings bench-architectures bench-claims bench-studies bench-reasons bench-sources bench-truth bench-infer \
  bench-structure bench-calibration bench-plan bench-peers lock lock-peers clean

install: $(STAMP)

$(DEPENDENCIES): constraints.txt
	@echo "Installing the pinned packages into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -qq --require-hashes -r constraints.txt
	@touch $@

$(STAMP): $(DEPENDENCIES) pyproject.toml
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Tests compile much and run little of it: so compile without optimising, and each program in one
# piece. A worker has one core, where a second thread of linear algebra would only spin. pytest comes
# last, so that the output ends with its closing line.
test: lint docs chromium
	$(CPU) $(QUICK) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

chromium: $(STAMP)
	@$(BIN)/python tests/browser/chromium.py

test-browser: chromium
	$(CPU) $(QUICK) $(BIN)/python -m pytest tests/browser -m "full or not full"

test-full: chromium
	$(CPU) $(BIN)/python -m pytest -m "full or not full"

demo: $(STAMP)
	$(BIN)/ldf demo

docs: $(STAMP)
	$(MKDOCS)

bench-numerics: $(STAMP)
	$(CPU) $(BIN)/python bench/numerics.py

# Not pinned with the others, since there is a build for each kind of machine.
$(TORCH): $(STAMP)
	@$(PIP) install -qq torch==2.13.0
	@touch $@

bench-fit: $(TORCH)
	$(CPU) $(BIN)/python bench/fit.py --page docs/fit-measured.md

# Two sets at a time, a core each.
bench-quality: $(STAMP)
	$(CPU) OMP_NUM_THREADS=1 $(BIN)/python bench/quality.py --data $(DATA) --page docs/quality-measured.md

bench-mappings: $(STAMP)
	$(CPU) $(BIN)/python bench/mappings.py --data $(DATA) --page docs/mappings-measured.md

bench-claims: $(STAMP)
	$(CPU) $(BIN)/python bench/claims.py --data $(DATA) --page docs/claims-measured.md

bench-studies: $(STAMP)
	$(CPU) $(BIN)/python bench/studies.py --data $(DATA) --page docs/studies-measured.md

bench-reasons: $(STAMP)
	$(CPU) $(BIN)/python bench/reasons.py --data $(DATA) --page docs/studies-reasons.md

bench-sources: $(STAMP)
	$(CPU) $(BIN)/python bench/sources.py --data $(DATA) --page docs/sources-measured.md

bench-architectures: $(STAMP)
	$(CPU) $(BIN)/python bench/architectures.py --page docs/architectures-measured.md \
	  --picture docs/images/architectures.png

bench-truth: $(STAMP)
	$(CPU) $(BIN)/python bench/truth.py --page docs/truth-measured.md

bench-infer: $(STAMP)
	$(CPU) $(BIN)/python bench/infer.py --data $(DATA) | tee docs/infer-measured.txt

bench-structure: $(STAMP)
	$(CPU) $(BIN)/python bench/structure.py --data $(DATA) | tee docs/structure-measured.txt

bench-calibration: $(STAMP)
	$(CPU) $(BIN)/python bench/calibration.py --out docs/images/calibration.png \
	  | tee docs/calibration-measured.txt

bench-plan: $(STAMP)
	@mkdir -p build
	$(CPU) $(BIN)/python bench/plan.py --data $(DATA) --out build/plan.json \
	  --page docs/plan-measured.md

# XGBoostLSS needs PyTorch, of which there is a build for each kind of machine: so its version is
# given here, and its hash is not. R's packages are used if Rscript has them.
$(PEERS): bench/peers-constraints.txt pyproject.toml
	@echo "Installing the peers into $(PEERS_VENV) ..."
	@$(PYTHON) -m venv $(PEERS_VENV)
	@$(PEERS_PIP) install -qq torch==2.13.0 || echo "without PyTorch, and so without XGBoostLSS"
	@$(PEERS_PIP) install -qq --require-hashes --no-deps -r bench/peers-constraints.txt
	@$(PEERS_PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@

# What build/peers.json has already is kept: remove it to measure all anew.
bench-peers: $(PEERS)
	$(CPU) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PEERS_VENV)/bin/python bench/peers.py \
	  --data $(DATA) --out build/peers.json --page docs/peers-measured.md

$(UV):
	@$(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip --disable-pip-version-check install -qq uv

# Versions already pinned are kept where they still fit, unless UPGRADE is set.
lock: $(UV)
	$(COMPILE) pyproject.toml --all-extras --output-file constraints.txt > /dev/null
	@! grep -n '://' constraints.txt

lock-peers: $(UV)
	@echo 'torch ; python_version < "3"' > build/no-torch.txt
	$(COMPILE) pyproject.toml bench/peers-requirements.txt --override build/no-torch.txt \
	  --output-file bench/peers-constraints.txt > /dev/null
	@! grep -n '://' bench/peers-constraints.txt

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true
