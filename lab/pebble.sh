#!/usr/bin/env bash
# Pebble, the small ACME authority that Let's Encrypt tests clients with, on this machine only. Needs Go and
# openssl; nothing it signs is trusted by anyone.
#
#   lab/pebble.sh build         builds it, unless it is there; prints the folder of its programs
#   lab/pebble.sh prepare DIR   writes DIR/pebble.json, DIR/ca.pem (trusts the directory's own TLS) and its key
#   lab/pebble.sh start DIR     prepares, starts Pebble and a name server that answers 127.0.0.1 for every
#                               name, waits until both answer; then DIR/ca.pem is what Larder takes as
#                               `ca`, and DIR/root.pem is what clients trust of certificates issued
#   lab/pebble.sh stop DIR      ends what `start DIR` started
#
# The directory is https://127.0.0.1:$PORT/dir. A configuration that uses it:
#
#   listen = [":5002", ":5001 tls"]
#   [tls]
#   acme = { email = "ops@example.com", directory = "https://127.0.0.1:14000/dir", ca = "DIR/ca.pem",
#            storage = "DIR/storage" }
#
# From the environment, with these defaults:
#   PORT=14000 MANAGEMENT_PORT=15000 DNS_PORT=8053    its own ports
#   HTTP_PORT=5002 TLS_PORT=5001                      where it looks for challenges: Larder's listeners
#   VALIDITY=7776000                                  lifetime of certificates in seconds
#   EAB=                                              KID:HMAC (base64url) that accounts must be bound to
#   BLOCKED=blocked.test                              a name it refuses
#   PEBBLE_VA_NOSLEEP=1 PEBBLE_WFE_NONCEREJECT=5 and Pebble's other variables
set -euo pipefail
version=v2.10.1
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "$root" && realpath -m "${CARGO_TARGET_DIR:-target}")/pebble/$version

build() {
  if [ ! -x "$bin/pebble" ] || [ ! -x "$bin/pebble-challtestsrv" ]; then
    command -v go >/dev/null || { echo "Go is missing: Pebble cannot be built" >&2; exit 77; }
    mkdir -p "$bin"
    # Several may want it at the same time; the first one builds.
    exec 9>"$bin/lock"
    flock 9
    if [ ! -x "$bin/pebble" ] || [ ! -x "$bin/pebble-challtestsrv" ]; then
      local modules=github.com/letsencrypt/pebble/v2/cmd
      GOFLAGS=-mod=mod GOBIN=$bin go install \
        $modules/pebble-challtestsrv@$version $modules/pebble@$version >&2
    fi
    exec 9>&-
  fi
  echo "$bin"
}

prepare() {
  local dir=$1 accounts=
  mkdir -p "$dir"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=pebble \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
    -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>"$dir/openssl.log" || { cat "$dir/openssl.log" >&2; exit 1; }
  if [ -n "${EAB:-}" ]; then
    accounts="\"externalAccountBindingRequired\": true,
    \"externalAccountMACKeys\": { \"${EAB%%:*}\": \"${EAB#*:}\" },"
  fi
  cat >"$dir/pebble.json" <<JSON
{
  "pebble": {
    "listenAddress": "127.0.0.1:${PORT:-14000}",
    "managementListenAddress": "127.0.0.1:${MANAGEMENT_PORT:-15000}",
    "certificate": "$dir/ca.pem",
    "privateKey": "$dir/ca.key",
    "httpPort": ${HTTP_PORT:-5002},
    "tlsPort": ${TLS_PORT:-5001},
    "ocspResponderURL": "",
    $accounts
    "domainBlocklist": ["${BLOCKED:-blocked.test}"],
    "retryAfter": { "authz": 1, "order": 1 },
    "keyAlgorithm": "ecdsa",
    "profiles": { "default": { "description": "all", "validityPeriod": ${VALIDITY:-7776000} } }
  }
}
JSON
}

start() {
  local dir=$1 dns=127.0.0.1:${DNS_PORT:-8053} roots tries=0
  build >/dev/null
  prepare "$dir"
  export PEBBLE_VA_NOSLEEP=${PEBBLE_VA_NOSLEEP:-1} PEBBLE_WFE_NONCEREJECT=${PEBBLE_WFE_NONCEREJECT:-5}
  "$bin/pebble-challtestsrv" -dnsserver "$dns" -defaultIPv6 "" -http01 "" -https01 "" -tlsalpn01 "" \
    -doh "" -management 127.0.0.1:0 >"$dir/dns.log" 2>&1 &
  echo $! >"$dir/dns.pid"
  "$bin/pebble" -config "$dir/pebble.json" -dnsserver "$dns" >"$dir/pebble.log" 2>&1 &
  echo $! >"$dir/pebble.pid"
  roots=https://127.0.0.1:${MANAGEMENT_PORT:-15000}/roots/0
  until curl -sf --cacert "$dir/ca.pem" -o "$dir/root.pem" "$roots" &&
    curl -sf --cacert "$dir/ca.pem" -o /dev/null "https://127.0.0.1:${PORT:-14000}/dir"; do
    tries=$((tries + 1))
    if [ $tries -gt 100 ] || ! kill -0 "$(cat "$dir/pebble.pid")" 2>/dev/null; then
      cat "$dir/pebble.log" >&2
      stop "$dir"
      exit 1
    fi
    sleep 0.1
  done
}

stop() {
  local dir=$1 name
  for name in pebble dns; do
    [ -f "$dir/$name.pid" ] || continue
    kill "$(cat "$dir/$name.pid")" 2>/dev/null || true
    rm -f "$dir/$name.pid"
  done
}

case ${1:-}:${2:+dir} in
  build:) build ;;
  prepare:dir) prepare "$(realpath -m "$2")" ;;
  start:dir) start "$(realpath -m "$2")" ;;
  stop:dir) stop "$(realpath -m "$2")" ;;
  *)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
esac
