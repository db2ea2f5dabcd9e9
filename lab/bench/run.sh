#!/usr/bin/env bash
# What a hit costs: server CPU microseconds per request and requests/s, Larder beside the peers that
# are installed (nginx, Varnish, HAProxy, h2o, Squid). Servers share core 0, the load has core 1. Those that
# speak HTTP/2 are also asked in it, over TLS, when h2load (Debian: nghttp2-client) and openssl are there.
#
#   ./run.sh [PEER...]           larder larder-builtin larder-site nginx nginx-buffers varnish varnish-site haproxy
#                                h2o squid; default all that are there
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
work=$(mktemp -d --suffix=-larder-bench)
trap 'rm -rf "$work"' EXIT
if command -v openssl >/dev/null; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
  cat "$work/cert.pem" "$work/key.pem" >"$work/both.pem"
fi
PYTHONPATH=$root/lab python3 -B "$here/bench.py" "$work" "$@"
