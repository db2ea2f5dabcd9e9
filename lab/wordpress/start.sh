# shellcheck shell=bash
# Sourced by the scripts of this folder, not run: brings up WordPress and Larder in front of it, and ends both
# when the script ends.
#
#   source start.sh BUILD TTL    BUILD: whose binary, unless LARDER_BIN names one; TTL: Larder's for a 200
#
# Sets `here`, `work`, `port` (WordPress's own) and `address` (Larder's).
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
larder=${LARDER_BIN:-$here/../../target/$1/larder}
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
sed "s/@LISTEN@/0/; s/@ORIGIN@/$port/; s/@TTL@/$2/" "$here/larder.toml" >"$work/larder.toml"
"$larder" serve --config "$work/larder.toml" --admin-socket "$work/admin.sock" \
  >"$work/larder.log" 2>&1 &
pid=$!
for _ in $(seq 100); do grep -q 'listening on ' "$work/larder.log" && break; sleep 0.1; done
address=$(sed -n 's/^.*listening on \([0-9.:]*\).*$/\1/p' "$work/larder.log" | head -n 1)
[ -n "$address" ] || { cat "$work/larder.log" >&2; exit 1; }
