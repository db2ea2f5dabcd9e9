#!/usr/bin/env bash
# Starts WordPress and Larder, runs test.py through Larder, and ends both. LARDER_BIN names the binary
# (default: the debug build).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
larder=${LARDER_BIN:-$here/../../target/debug/larder}
[ -x "$larder" ] || { echo "no Larder at $larder: build it, or name it with LARDER_BIN" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/larder-wordpress.XXXXXX")
pid=

finish() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  DELETE=1 "$here/down.sh" "$work"
}
trap finish EXIT

port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
PORT=$port "$here/up.sh" "$work"

# Long enough for no page to become stale between two requests of the test.
sed "s/@LISTEN@/0/; s/@ORIGIN@/$port/; s/@TTL@/10m/" "$here/larder.toml" >"$work/larder.toml"
"$larder" serve --config "$work/larder.toml" --admin-socket "$work/admin.sock" \
  >"$work/larder.log" 2>&1 &
pid=$!
for _ in $(seq 100); do grep -q 'listening on ' "$work/larder.log" && break; sleep 0.1; done
address=$(sed -n 's/^.*listening on \([0-9.:]*\).*$/\1/p' "$work/larder.log" | head -n 1)
[ -n "$address" ] || { cat "$work/larder.log" >&2; exit 1; }

LARDER_URL=http://$address python3 "$here/test.py"
