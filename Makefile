# make try    set up, build, and run the main job: PostgreSQL on disk and in memory, compared
# make test   set up, build, and run every test but those that take long, which it lists
# The other targets: CONTRIBUTING.md
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
STAMPS := .venv/stamps
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
WEB_SOURCES := $(shell find web -path web/node_modules -prune -o -path web/dist -prune -o -type f -print)
VIEWER := python/plinth/report/viewer.html

.PHONY: help try try-fleet try-hosts build test run-tests test-quick test-long check check-types check-rust check-python check-viewer dist test-dist test-try docs fmt bench bench-load bench-tpcc simulate fuzz clean test-deps

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

try: build ## run the main job: experiments/ramdisk.toml
	@scripts/try-deps.sh
	@code=0; $(BIN)/plinth run experiments/ramdisk.toml || code=$$?; \
	if [ $$code -eq 3 ]; then echo "Measured, but this machine was too noisy to decide: see the report."; else exit $$code; fi

try-fleet: build ## a Ray cluster of three machines, which are network namespaces of this one, and a run by all of them; needs root
	@code=0; $(BIN)/python scripts/try_fleet.py || code=$$?; \
	if [ $$code -eq 3 ]; then echo "Measured, but this machine was too noisy to decide: see the report."; else exit $$code; fi

try-hosts: build ## a primary and two standbys on three hosts, which are namespaces of this machine, and the load from a fourth; needs root
	@code=0; $(BIN)/python scripts/try_hosts.py || code=$$?; \
	if [ $$code -eq 3 ]; then echo "Measured, but this machine was too noisy to decide: see the report."; else exit $$code; fi

build: $(STAMPS)/native $(VIEWER) ## leave the command at .venv/bin/plinth

$(STAMPS)/venv: scripts/bootstrap.sh
	@scripts/bootstrap.sh
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/python: pyproject.toml requirements.lock $(STAMPS)/venv
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	@touch $@

$(STAMPS)/rust: scripts/need-rust.sh $(STAMPS)/venv
	@scripts/need-rust.sh
	@touch $@

$(STAMPS)/native: $(RUST_SOURCES) $(STAMPS)/python $(STAMPS)/rust
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --uv --release --quiet
	$(BIN)/python -m compileall -q python
	@touch $@

$(VIEWER): $(WEB_SOURCES) $(STAMPS)/python
	@scripts/npm.sh ci
	@scripts/npm.sh run build

test-deps: build
	@scripts/test-deps.sh

# Built in the time that nothing else needs a processor: first next to the native module, then next to the tests.
$(STAMPS)/unit-tests: $(RUST_SOURCES) $(STAMPS)/python $(STAMPS)/rust
	chrt --idle 0 cargo test --workspace --lib --bins --tests --no-run --quiet
	@touch $@

test: ## the tests: Rust, Python, viewer, and the checks; lists those of test-long
	@$(MAKE) --no-print-directory -j3 run-tests $(STAMPS)/unit-tests

run-tests: test-deps
	@env --unset=MAKEFLAGS --unset=MFLAGS scripts/tests.sh

test-quick: test-deps ## in three minutes, while you work: unit tests and one whole run
	@env --unset=MAKEFLAGS --unset=MFLAGS scripts/tests.sh quick

OLD_POSTGRES := tests/postgres/node_modules/.package-lock.json

$(OLD_POSTGRES): tests/postgres/package-lock.json $(STAMPS)/python
	NPM_PREFIX=tests/postgres scripts/npm.sh ci --ignore-scripts
	NPM_PREFIX=tests/postgres scripts/npm.sh run link # of libraries: an npm package has no symbolic links
	@touch $@

test-long: test-deps $(OLD_POSTGRES) ## what takes long: ten times as many comparisons with pgbench; experiments on emulated disks
	PLINTH_TEST_FACTOR=10 cargo test --release -p plinth-script --quiet
	PLINTH_TEST_FACTOR=10 $(BIN)/pytest tests/engine/load/test_native_language.py
	@env --unset=MAKEFLAGS --unset=MFLAGS scripts/tests.sh long

$(STAMPS)/tools: requirements-tools.lock $(STAMPS)/venv
	$(BIN)/uv venv --quiet --clear .venv/tools
	$(BIN)/uv pip sync --quiet --only-binary :all: --python .venv/tools/bin/python requirements-tools.lock
	@touch $@

dist: build $(STAMPS)/tools ## wheels for x86_64 and aarch64, and the sdist, into dist/
	@scripts/dist.sh

test-dist: $(STAMPS)/tools ## install the wheel of dist/ in Debian's minimal system, as root and as an ordinary user, and run it; needs root
	@scripts/test-dist.sh

test-try: ## whether `make try` gets what its experiment needs in Debian's minimal system; needs root and a network
	@scripts/test-try.sh

docs: build $(STAMPS)/tools ## the documentation as a searchable site, into target/site/
	$(BIN)/python scripts/study_pages.py docs/gallery
	.venv/tools/bin/zensical build --clean

check: build ## lints, types, import rules, generated files, prose
	@$(MAKE) --no-print-directory --output-sync=target -j2 check-types check-rust check-python check-viewer

check-types: # the longest, and on one processor
	$(BIN)/pyright

check-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

check-python:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/generated.py --check
	$(BIN)/python scripts/prose.py

check-viewer:
	scripts/npm.sh run check

fmt: build ## format everything, and regenerate the generated files
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python scripts/generated.py
	scripts/npm.sh run types
	scripts/npm.sh run format

bench: build ## the load engine next to pgbench, into benchmarks/runs/
	$(BIN)/python benchmarks/engine_vs_pgbench.py

fuzz: test-deps ## feed the parsers with made-up bytes, 10 minutes each (SECONDS=600), and keep what reaches new code
	PLINTH_FUZZ_KEEP=1 scripts/fuzz.sh $(or $(SECONDS),600)

simulate: build ## every statistic of a report against a known truth, some minutes (FACTOR=0.1 scales down)
	$(BIN)/python benchmarks/simulate.py $(if $(FACTOR),--factor=$(FACTOR))

bench-load: build ## loading next to pgbench -i and COPY, into benchmarks/runs/; some 40 minutes on 2 cores: ROWS=2000000 scales down
	$(BIN)/python benchmarks/loading.py $(if $(ROWS),--rows=$(ROWS))

bench-tpcc: build ## the TPC-C-derived workload next to go-tpc, into benchmarks/runs/: time to load, client CPU a transaction
	$(BIN)/python benchmarks/tpcc_vs_peers.py

clean: ## delete what was built
	rm -rf .venv target web/node_modules $(VIEWER) python/plinth/report/charts.js $(addprefix python/plinth/serve/,live.js live.css catalogue.js catalogue.css)
