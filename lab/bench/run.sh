#!/usr/bin/env bash
# What a hit costs: server CPU microseconds per request and requests/s, Larder beside the peers that
# are installed (nginx, Varnish, HAProxy, Squid). Servers share core 0, the load has core 1.
#
#   ./run.sh [PEER...]           larder nginx varnish haproxy squid; default all that are there
#
# ROUNDS (3), SECONDS_EACH (4) and CONNECTIONS (64) set how long and how wide. LARDER_BIN names another
# binary than the release build. Times move with whatever else the machine does: compare within one run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export PATH=$PATH:/usr/sbin
export LARDER_BIN=${LARDER_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/larder}

command -v python3 >/dev/null || { echo "python3 is missing" >&2; exit 1; }
command -v wrk >/dev/null || command -v ab >/dev/null || {
  echo "no load generator: install wrk, or ab (Debian: apache2-utils)" >&2
  exit 1
}
[ -x "$LARDER_BIN" ] || {
  echo "no Larder at $LARDER_BIN: cargo build --release, or name it with LARDER_BIN" >&2
  exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/larder-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -B "$here/bench.py" "$work" "$@"
