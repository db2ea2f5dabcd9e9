#!/usr/bin/env bash
# Microcaching, as in NGINX's article on it: `ab -c 10 -t 30 -k` on WordPress's front page, alone and behind
# Larder with a lifetime of one second and defaults otherwise.
#
#   SEC=30 LARDER_BIN=target/release/larder ./microcache.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
larder=${LARDER_BIN:-$here/../../target/release/larder}
seconds=${SEC:-30}
[ -x "$larder" ] || { echo "no Larder at $larder: build it, or name it with LARDER_BIN" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/larder-wordpress.XXXXXX")
pid=
export PATH=$PATH:/usr/sbin

finish() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  DELETE=1 "$here/down.sh" "$work"
}
trap finish EXIT

port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
PORT=$port "$here/up.sh" "$work"
sed "s/@LISTEN@/0/; s/@ORIGIN@/$port/; s/@TTL@/1s/" "$here/larder.toml" >"$work/larder.toml"
"$larder" serve --config "$work/larder.toml" --admin-socket "$work/admin.sock" \
  >"$work/larder.log" 2>&1 &
pid=$!
for _ in $(seq 100); do grep -q 'listening on ' "$work/larder.log" && break; sleep 0.1; done
address=$(sed -n 's/^.*listening on \([0-9.:]*\).*$/\1/p' "$work/larder.log" | head -n 1)
[ -n "$address" ] || { cat "$work/larder.log" >&2; exit 1; }

# Requests at the origin so far. Apache itself sends "OPTIONS *" to children that it wants to end.
fetched() { grep -vc 'OPTIONS \*' "$work/requests.log"; }

# One row: name and address. The origin's own log counts its requests; what the row before left unfinished is
# logged when it ends, so that is waited for.
row() {
  local before after
  sleep 5
  before=$(fetched)
  ab -q -c 10 -t "$seconds" -n 50000000 -k "http://$2/" >"$work/ab.txt" 2>&1
  after=$(fetched)
  awk -v name="$1" -v fetched=$((after - before)) '
    /^Requests per second/ { rate = $4 }
    /^Failed requests/ { failed = $3 }
    /^Non-2xx/ { failed += $3 }
    /^Total:/ { min = $2; mean = $3; sd = $4; median = $5; max = $6 }
    END { printf "%-22s %12s %8s %8s %8s %8s %8s %10s\n", name, rate, mean, sd, median, max, failed, fetched }
  ' "$work/ab.txt"
}

printf '%-22s %12s %8s %8s %8s %8s %8s %10s\n' "" requests/s mean sd median max failed "at origin"
row "WordPress alone" "127.0.0.1:$port"
row "behind Larder" "$address"
echo "milliseconds; $seconds s each; 10 connections"
