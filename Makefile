# Every target makes the virtual environment it needs. `make` alone lists them.

PYTHON ?= python3
JOBS ?= 2
# Code in the chapters is read on a page, where longer lines would have to be scrolled.
CHAPTER_WIDTH := 94
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# torch pins its CUDA libraries exactly. Leaving them out of the lock keeps a CPU-only torch CPU-only.
CUDA_PACKAGES := cuda-bindings cuda-pathfinder cuda-toolkit triton nvidia-cublas nvidia-cuda-cccl nvidia-cuda-cupti \
	nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-cusolver \
	nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book smoke test lint format benchmark lab launch links lock release clean

help:
	@echo "make book    execute every chapter and build the pages (SCALE=smoke for a quick one)"
	@echo "make smoke   execute every chapter without a browser (CHAPTER=04 for one; SCALE=laptop PARAMETERS='seed=1' JOBS=4)"
	@echo "make test    run every check and every test"
	@echo "make lab     open the chapters in JupyterLab"
	@echo "make benchmark  measure the times on the book's benchmark page (some twenty minutes; SIZE=smoke for less than one)"
	@echo "make format  format the code as the checks expect"
	@echo "make launch  give the chapters the cell that they need on Colab, after a change of the address in _config.yml"
	@echo "make links   ask every other host that the built book links to (make book first; wants a network)"
	@echo "make release the wheel, the source and the built book, in dist/"
	@echo "make lock    pin requirements.txt again from pyproject.toml"
	@echo "make clean   remove built pages and caches (.venv stays)"

# Installed again only when a dependency changed. An existing .venv is kept: it may hold a torch of your choice.
$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: '$(PYTHON)' is older or missing. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "No virtual environment could be made. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(VENV) was made with a Python older than 3.11. Remove it and run make again." >&2; exit 1; }
	@echo "Installing into $(VENV) (some minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

book: SCALE ?= laptop
book: $(INSTALLED)
	$(BIN)/python book/build.py --scale $(SCALE) --jobs $(JOBS)

smoke: SCALE ?= smoke
smoke: $(INSTALLED)
	$(BIN)/python book/execute.py --scale $(SCALE) --jobs $(JOBS) $(addprefix --chapter ,$(CHAPTER)) \
		$(foreach parameter,$(PARAMETERS),--parameter $(subst =, ,$(parameter))) \
		$(addprefix --time-limit ,$(TIME_LIMIT)) $(addprefix --memory-limit ,$(MEMORY_LIMIT))

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff format --check --line-length $(CHAPTER_WIDTH) book/*.ipynb
	$(BIN)/mypy
	$(BIN)/codespell

# Each of the processes has one core to itself, and begins with the book, whose files take longest. Not in pytest's own
# options: --dist there switches benchmarks off.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist=loadfile --no-loadscope-reorder

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/ruff format --line-length $(CHAPTER_WIDTH) book/*.ipynb

# Only what was measured in full size goes to the book's page.
benchmark: export NADTOOLS_BENCHMARK = $(SIZE)
benchmark: SIZE ?= full
benchmark: $(INSTALLED)
	@mkdir -p _build
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/benchmarks/bench_costs.py --benchmark-json=_build/benchmark-costs.json
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/benchmarks/bench_nads.py --benchmark-json=_build/benchmark-nads.json
	$(BIN)/python -m pytest tests/benchmarks/bench_sweeps.py --benchmark-json=_build/benchmark-sweeps.json
	$(if $(filter full,$(SIZE)),mv _build/benchmark-*.json book/results)

lab: $(INSTALLED)
	$(BIN)/jupyter lab --notebook-dir=book

launch: $(INSTALLED)
	$(BIN)/python book/launch.py

links: $(INSTALLED)
	@test -d _build/source || { echo "There are no pages yet: run make book, or make book SCALE=smoke, first." >&2; exit 1; }
	cd _build/source && $(CURDIR)/$(BIN)/python -c 'from jupyter_book.cli.main import main; main()' \
		build . --builder linkcheck --path-output ../links --all --quiet

# Built twice, the second time from the source archive: so it holds all that it takes.
release: book
	rm -rf dist *.egg-info
	$(BIN)/uv build --quiet --offline --no-build-isolation --python $(BIN)/python
	rm -rf *.egg-info
	$(BIN)/python -m zipfile --create dist/nadtools-book-$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' nadtools/_version.py).zip _build/html
	@ls -lh dist

lock: $(INSTALLED)
	@{ echo "# The complete environment for Linux, macOS and Windows, Python 3.11 to 3.13."; \
		echo "# Made by 'make lock' from pyproject.toml with the extras book and dev; not edited by hand."; \
		echo "# torch itself brings the CUDA libraries that it needs, so none is listed here."; \
		$(BIN)/uv pip compile pyproject.toml --extra book --extra dev --upgrade \
			--universal --python-version 3.11 --fork-strategy fewest \
			--no-header --no-annotate --no-emit-index-url $(addprefix --no-emit-package ,$(CUDA_PACKAGES)); \
	} > requirements.new
	@mv requirements.new requirements.txt

clean:
	rm -rf _build build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find nadtools tests book -name __pycache__ -type d -prune -exec rm -rf {} +
