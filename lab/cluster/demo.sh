#!/usr/bin/env bash
# Three Larders and a NATS server on this machine. A purge on one is seen on all three; one is killed, misses a purge, and
# has applied it before it trusts what its disk has kept; NATS is killed, and serving goes on. All of it ends with the
# script.
#
#   lab/cluster/demo.sh LARDER     the program; ports from PORT (18400) on
set -euo pipefail
export PATH=$PATH:/usr/sbin
larder=$(realpath "${1:?usage: demo.sh LARDER}")
port=${PORT:-18400}
dir=$(mktemp -d)
pids=()
host='Host: example.test'
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT
# Root stays root, whatever users the machine has.
stay=()
[ "$(id -u)" != 0 ] || stay=(--user root)

end() { kill -9 "$1"; wait "$1" 2>/dev/null || true; }
step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
node() { echo "$dir/n$1"; }
run_nats() {
  nats-server -a 127.0.0.1 -p $((port + 9)) -js -sd "$dir/nats" >"$dir/nats.log" 2>&1 &
  nats=$!
  pids+=($nats)
}
run_node() {
  "$larder" serve "${stay[@]}" --config "$(node "$1").toml" --admin-socket "$(node "$1").sock" >>"$(node "$1").log" 2>&1 &
  pids+=($!)
  eval "node$1=$!"
}
# The origin says how often it was asked: a number that stays is a hit.
run_origin() {
  python3 - "$((port + 8))" <<'PY' &
import http.server, sys
asked = 0
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        body = f"version {asked}\n".encode()
        self.send_response(200)
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
PY
  pids+=($!)
}
show() {
  for n in 1 2 3; do
    printf '  n%s: %s' $n "$(curl -s -m 5 -H "$host" http://127.0.0.1:$((port + n))/page || echo down)"
  done
  echo
}
status() { "$larder" cluster status --admin-socket "$(node "$1").sock"; }
until_true() {
  local tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { echo "never: $*" >&2; exit 1; }
    sleep 0.1
  done
}
joined() { status "$1" | grep -q 'in touch; what is stored is used'; }
knows() { [ "$(status "$1" | grep -c '^n[0-9].* ready')" -ge 3 ]; }
alone() { status 1 | grep -q 'revalidated before use'; }

for n in 1 2 3; do
  cat >"$(node $n).toml" <<TOML
listen = "127.0.0.1:$((port + n))"
workers = 1
[disk]
path = "$(node $n).disk"
size = "256MiB"
[log_ring]
folder = "$(node $n).ring"
[cluster]
servers = "nats://127.0.0.1:$((port + 9))"
name = "n$n"
max_isolation = "5s"
[[site]]
host = "*"
origin = "http://127.0.0.1:$((port + 8))"
purge = { dialects = ["purge"] }
TOML
done
run_nats
run_origin
for n in 1 2 3; do run_node $n; done
for n in 1 2 3; do until_true joined $n; until_true knows $n; done

step "Three nodes, each with its own copy of the page"
show; show
step "A purge on n1, which is answered when all have applied it"
curl -s -X PURGE -H "$host" -H 'Larder-Wait: all' http://127.0.0.1:$((port + 1))/page
show
step "n3 is killed; a purge on n2 meanwhile"
sleep 2
end $node3
curl -s -X PURGE -H "$host" -H 'Larder-Wait: quorum' http://127.0.0.1:$((port + 2))/page
run_node 3
until_true joined 3
echo "n3 is back, with its disk:"
show
status 3
step "NATS is killed: serving goes on, and after 5 s only with a word of the origin"
end $nats
show
until_true alone
status 1 | head -n 1
show
step "NATS is back"
run_nats
for n in 1 2 3; do until_true joined $n; done
status 1
