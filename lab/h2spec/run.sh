#!/usr/bin/env bash
# h2spec, the conformance suite for HTTP/2 servers, against Larder: on a listener with TLS and on one with `h2c`, each
# with its usual cases and with those it calls strict. Prints the cases that fail, with their sections, and fails when
# there are any.
#
#   lab/h2spec/run.sh           LARDER_BIN names another binary
#   lab/h2spec/run.sh build     builds it, unless it is there; needs Go
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "$root" && realpath -m "${CARGO_TARGET_DIR:-target}")/h2spec/$(cksum <"$root/lab/h2spec/go.sum" | cut -d' ' -f1)

build() {
  [ ! -x "$bin/h2spec" ] || return 0
  command -v go >/dev/null || { echo "Go is missing: h2spec cannot be built" >&2; exit 77; }
  mkdir -p "$bin"
  (cd "$root/lab/h2spec" && go build -mod=readonly -o "$bin/h2spec" github.com/summerwind/h2spec/cmd/h2spec)
}

build
[ "${1:-}" != build ] || exit 0
source "$root/lab/lib.sh" h2spec
start origin node "$lab/http2-clients/origin.mjs" "$work/run/origin.sock"
until_ready origin test -S "$work/run/origin.sock"
LAB_CERT=files start_larder "$lab/http2-clients/larder.toml"

# once NAME OPTIONS...: one run, with its output in $work/NAME.txt; the time-out is for a loaded machine.
once() {
  local name=$1
  shift
  timeout 300 "$bin/h2spec" --host 127.0.0.1 --timeout 5 "$@" >"$work/$name.txt" 2>&1 &
  runs+=($!)
}
# Some cases hold when nothing comes for that long, so the runs go side by side.
runs=()
once tls --tls --insecure --port "$https"
once tls-strict --tls --insecure --port "$https" --strict
once h2c --port "$http"
once h2c-strict --port "$http" --strict
for run in "${runs[@]}"; do wait "$run" || true; done

cases=0 good=0
for name in tls tls-strict h2c h2c-strict; do
  read -r tests passed < <(sed -n 's/^\([0-9]*\) tests, \([0-9]*\) passed.*/\1 \2/p' "$work/$name.txt") || {
    echo "$name: h2spec did not come to its end"
    tail -n 5 "$work/$name.txt"
    tests=1 passed=0
  }
  sed -n '/^Failures/,/^Finished/{/^Failures\|^Finished/d;p}' "$work/$name.txt"
  echo "$name: $passed of $tests"
  cases=$((cases + tests)) good=$((good + passed))
done
! grep panicked "$work/larder.log" || good=0
echo "h2spec, over TLS and h2c: $good of $cases cases hold"
[ $good = $cases ]
