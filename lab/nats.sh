#!/usr/bin/env bash
# Builds the current NATS server from the Go module proxy, unless it is there, and prints its path. Debian's is older, and
# both are tested: NATS_SERVER=$(lab/nats.sh) cargo test --package larder --test cluster
set -euo pipefail
version=v2.15.3
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "$root" && realpath -m "${CARGO_TARGET_DIR:-target}")/nats/$version
if [ ! -x "$bin/nats-server" ]; then
  command -v go >/dev/null || { echo "Go is missing: nats-server cannot be built" >&2; exit 77; }
  mkdir -p "$bin"
  exec 9>"$bin/lock"
  flock 9
  [ -x "$bin/nats-server" ] || GOFLAGS=-mod=mod GOBIN=$bin go install "github.com/nats-io/nats-server/v2@$version" >&2
fi
echo "$bin/nats-server"
