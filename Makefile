SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# What the tests run besides this crate, installed below target/.
VENVS := target/venv target/venv-el target/venv-images target/venv-mcp1 target/venv-mcp1-10 target/venv-mcp1-9
TOOLS := $(VENVS:=/.installed) target/npm/.installed

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: demo
demo: ## Serve a sample project and print lines to paste (ARGS='--store DIR' for one's own trials)
	@echo 'Building artifactd; the first time takes a few minutes.' >&2
	@cargo build --locked
	@target/debug/artifactd demo $(ARGS)

.PHONY: test
test: tools ## Install what the tests need below target/, then run all of them
	cargo test --locked --no-run
	cargo build --locked
	sync # What is still to be written of all that would hold up every ledger that waits for the disk.
	cargo test --locked
	target/venv/bin/python -m pytest tests/clients $(ARGS)
	target/venv/bin/python -m pytest tests/operations $(ARGS)

.PHONY: e2e
e2e: e2e-agents e2e-downloads e2e-scale e2e-soak ## The long ones: agents, browsers and download clients, several replicas

.PHONY: e2e-agents
e2e-agents: tools target/npm-agents/.installed target/venv-agents/.installed ## Run coding agents against it, with models that play a script
	cargo build --locked
	target/venv/bin/python -m pytest tests/clients/e2e_*.py $(ARGS)

.PHONY: lint
lint: deny ## Formatting, lints, documentation, licences
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --document-private-items

# One version, so that what is refused changes when this line does.
CARGO_DENY := target/cargo-deny-0.20.2/bin/cargo-deny

.PHONY: deny
deny: $(CARGO_DENY) ## Licences, sources and bans of all that is depended on, by cargo-deny, which is installed below target/
	for package in . fuzz benches/peers; do \
		$(CARGO_DENY) --config deny.toml --manifest-path $$package/Cargo.toml --locked \
			check --hide-inclusion-graph --allow license-exception-not-encountered bans licenses sources; \
	done

$(CARGO_DENY):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug \
		--root $(CARGO_DENY:/bin/cargo-deny=) cargo-deny@$(patsubst target/cargo-deny-%/bin/cargo-deny,%,$@)

.PHONY: e2e-downloads
e2e-downloads: tools ## Downloads by aria2, rclone, Node, httpx and a headless Chromium; slow clients; large archives
	tests/debian-packages.sh e2e
	cargo build --locked
	target/venv/bin/python -m pytest tests/e2e/downloads $(ARGS)

.PHONY: e2e-scale
e2e-scale: tools ## Three replicas behind nginx and HAProxy, over a Redis Cluster, while parts are killed and added
	tests/debian-packages.sh e2e
	cargo build --locked
	target/venv/bin/python -m pytest tests/e2e/scale $(ARGS)

.PHONY: e2e-soak
e2e-soak: tools ## All that clients do, at once, in short: what the service holds for it is given back
	cargo build --locked
	target/venv/bin/python -m pytest -s tests/e2e/soak $(ARGS)

# What a long form is bounded by: so many seconds for each test that has one, and half an hour for the mixed load
# unless SOAK_SECONDS is given.
MIXED_SECONDS := $(or $(SOAK_SECONDS),1800)
SOAK_SECONDS ?= 300

.PHONY: soak
soak: tools ## Faults under load, random histories (SOAK_SECONDS=300 for each), a mixed load (half an hour)
	SOAK_SECONDS=$(SOAK_SECONDS) cargo test --locked --test ledger model:: -- --nocapture --test-threads=1
	SOAK_SECONDS=$(SOAK_SECONDS) cargo test --locked --test faults -- --nocapture --test-threads=1
	tests/debian-packages.sh e2e
	cargo build --locked
	SOAK_SECONDS=$(SOAK_SECONDS) target/venv/bin/python -m pytest --timeout=$$(($(SOAK_SECONDS) + 300)) -s tests/e2e/scale/test_scale.py
	SOAK_SECONDS=$(SOAK_SECONDS) target/venv/bin/python -m pytest tests/operations/test_store_faults.py
	SOAK_SECONDS=$(MIXED_SECONDS) target/venv/bin/python -m pytest -s tests/e2e/soak
	SOAK_SECONDS=$(SOAK_SECONDS) SLOW_CLIENTS=1000 ARCHIVE_FILES=99999 target/venv/bin/python -m pytest -s \
		--timeout=$$(($(SOAK_SECONDS) + 600)) \
		tests/e2e/downloads/test_slow_clients.py tests/e2e/downloads/test_large_archives.py

.PHONY: bench
bench: target/venv/.installed target/venv-images/.installed ## Downloads beside nginx (DOWNLOADS='--sizes 1MiB'), windows, images beside decoders, calls beside rmcp
	tests/debian-packages.sh bench
	cargo build --locked --release
	target/venv/bin/python benches/downloads.py target/release/artifactd $(DOWNLOADS)
	target/venv/bin/python benches/reads.py target/release/artifactd
	target/venv-images/bin/python benches/images.py
	cargo build --locked --release --manifest-path benches/peers/Cargo.toml --target-dir target/peers
	target/venv/bin/python benches/mcp.py target/release/artifactd target/peers/release/artifactd-peers

# Seconds for each target, and which.
FUZZ_SECONDS := 600
FUZZ_TARGETS := gif jpeg png webp mcp

.PHONY: fuzz
fuzz: ## Look for inputs that break a promise (FUZZ_SECONDS=600 for each of FUZZ_TARGETS)
	cargo fuzz build -s none
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target fuzz/seeds/$$target; \
		dictionary=$$(ls fuzz/seeds/$$target.dict 2> /dev/null || true); \
		cargo fuzz run -s none $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=10 $${dictionary:+-dict=$$dictionary}; \
	done

bench: bench-ledger

.PHONY: bench-ledger
bench-ledger: ## Reads metered per second, in Redis and in a file, and what they cost (ARGS=--quick: the short form)
	cargo bench --locked --bench ledger --no-run
	taskset -c 1 cargo bench --locked --bench ledger -- $(ARGS)

.PHONY: tools
tools: $(TOOLS) ## Only install what the tests need

.PHONY: debian
debian:
	@tests/debian-packages.sh

target/venv/.installed: tests/requirements.txt
target/venv-el/.installed: tests/requirements-el.txt
target/venv-images/.installed: tests/requirements-images.txt
target/venv-mcp1/.installed: tests/requirements-mcp1.txt
target/venv-mcp1-10/.installed: tests/requirements-mcp1-10.txt
target/venv-mcp1-9/.installed: tests/requirements-mcp1-9.txt
target/venv-agents/.installed: tests/requirements-agents.txt
$(VENVS:=/.installed) target/venv-agents/.installed: | debian
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

target/npm/.installed: tests/package.json tests/package-lock.json
target/npm-agents/.installed: tests/agents/package.json tests/agents/package-lock.json
# Not `npm ci`, which takes an optional package of Windows for missing in a lock file that is complete.
target/npm/.installed target/npm-agents/.installed: | debian
	mkdir -p $(@D)
	cp $^ $(@D)
	cd $(@D) && npm install --no-save --no-audit --no-fund --loglevel=error
	touch $@
