# What a contributor does every day; CONTRIBUTING.md explains.
FUZZ_SECONDS ?= 300

.PHONY: demo cluster-demo test lint fmt bench lab fuzz package site

# Without what a demo does not show, which takes most of the time: see `larder_demo` in CONTRIBUTING.md.
demo:
	@scripts/setup.sh build
	RUSTFLAGS='--cfg larder_demo' cargo build --profile demo --package larder --no-default-features
	$${CARGO_TARGET_DIR:-target}/demo/larder demo

# Three nodes and a NATS server: a purge on one is seen on all, one is killed and comes back.
cluster-demo:
	@scripts/setup.sh build nats
	cargo build --profile demo --package larder
	@lab/cluster/demo.sh $${CARGO_TARGET_DIR:-target}/demo/larder

# FAST=1: without the labs, the counts and the models, which CI runs.
test:
	@scripts/test.sh $(if $(FAST),fast)

lint:
	@scripts/test.sh lint

fmt:
	cargo fmt --all

# Instructions of the request path, against a committed baseline; then times, beside the peers that are
# installed.
bench:
	@scripts/setup.sh bench
	cargo xtask counts
	cargo build --release --package larder
	lab/bench/run.sh

# The experiments with real peers; each writes its page in docs/lab. Namespaces, for islands, take root.
lab:
	@scripts/setup.sh experiments nats cluster
	cargo build --release --package larder
	cargo build --release --package testkit --example line
	for name in mixed-10k second-hop microcache wordpress-https small-and-large-vps stops bodies \
		disk disk-damage share crawlers grpc warmth islands; do \
		lab/experiments/run.sh $$name || exit 1; \
	done

# cargo-fuzz asks for a nightly compiler; RUSTC_BOOTSTRAP lets the pinned one do.
fuzz:
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	@cd fuzz && for target in $$(RUSTC_BOOTSTRAP=1 cargo fuzz list); do \
		echo "== $$target" && RUSTC_BOOTSTRAP=1 cargo fuzz run $$target -- \
			-max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 || exit 1; \
	done

# A Debian package, a tarball and a container image, in target/package.
package: site
	cargo xtask package

# The documentation as static pages, in target/site; they need no server.
site:
	@scripts/setup.sh site
	@scripts/site.py
