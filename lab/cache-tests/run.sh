#!/usr/bin/env bash
# Runs the public HTTP caching suite (npm: http-cache-tests) through Larder and scores it.
#
#   ./run.sh [rfc|safe]          against results-<profile>.json; fails on any regression
#   ./run.sh rfc h2              the same over HTTP/2, against the same table
#   WRITE=1 ./run.sh rfc         renews the table instead
#   BASE=http://127.0.0.1:8080 ORIGIN_PORT=8000 ./run.sh [rfc h2]
#                                any other proxy that already stands in front of that origin port
#
# LARDER_BIN names the binary (default: the debug build). A test that the table has as passed may fail in
# one run on a loaded machine; it is a regression when it fails in each of three.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
profile=${1:-rfc}
version=${2:-h1}
larder=${LARDER_BIN:-$here/../../target/debug/larder}
[ -n "${BASE:-}" ] || [ -x "$larder" ] || { echo "no Larder at $larder: build it, or name it with LARDER_BIN" >&2; exit 1; }
table=$here/results-$profile.json
work=$(mktemp -d)
pids=()

finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

# Waits up to ten seconds until a command succeeds.
until_ready() {
  for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
  echo "not ready: $*" >&2
  cat "$work"/*.log >&2
  return 1
}

free_port() {
  node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => {
    console.log(s.address().port); s.close() })'
}

[ -d "$here/node_modules/http-cache-tests" ] || (cd "$here" && npm ci --no-audit --no-fund >/dev/null)
suite=$here/node_modules/http-cache-tests

port=${ORIGIN_PORT:-$(free_port)}
(cd "$suite" && exec env npm_config_protocol=http npm_config_port="$port" \
  npm_config_pidfile="$work/origin.pid" node server/server.mjs) >"$work/origin.log" 2>&1 &
pids+=($!)
until_ready grep -q '^Listening' "$work/origin.log"

# What a server says that it listens on.
address() { sed -n 's/^.*listening on \([0-9.:]*\).*$/\1/p' "$work/$1.log" | head -n 1; }

base=${BASE:-}
[ "$version" != h2 ] || h2c=' h2c'
if [ -z "$base" ]; then
  stay=()
  [ "$(id -u)" != 0 ] || stay=(--user root)
  "$larder" serve "${stay[@]}" --origin "http://127.0.0.1:$port" --listen "127.0.0.1:0${h2c:-}" --profile "$profile" \
    --admin-socket "$work/admin.sock" >"$work/larder.log" 2>&1 &
  pids+=($!)
  until_ready grep -q 'listening on ' "$work/larder.log"
  base=http://$(address larder)
fi
# The suite's client has no HTTP/2: a small server between passes on what it asks.
if [ "$version" = h2 ]; then
  node "$here/over-http2.mjs" "${base#http://}" >"$work/http2.log" 2>&1 &
  pids+=($!)
  until_ready grep -q 'listening on ' "$work/http2.log"
  base=http://$(address http2)
fi

# The suite's client reads its settings from npm's environment; both spellings of `id` must be there and
# empty, or it looks for a test called "undefined".
run_suite() {
  (cd "$suite" && env npm_config_base="$base" npm_package_config_base="$base" npm_config_id= \
    npm_package_config_id= timeout 300 node --no-warnings cli.mjs) >"$1"
}

score() { (cd "$here" && node score.mjs "$@"); }

run_suite "$work/1.json"
if [ -n "${BASE:-}" ]; then
  score "$work/1.json"
  exit
fi
if [ -n "${WRITE:-}" ]; then
  run_suite "$work/2.json"
  score "$work/1.json" "$work/2.json" --write "$table"
  exit
fi
echo "http-cache-tests, profile $profile, $version"
if score "$work/1.json" --against "$table" >"$work/score"; then
  cat "$work/score"
  exit
fi
run_suite "$work/2.json"
run_suite "$work/3.json"
score "$work/1.json" "$work/2.json" "$work/3.json" --against "$table"
