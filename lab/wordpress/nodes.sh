#!/usr/bin/env bash
# WordPress on PHP-FPM behind three Larders that share what they store, and a NATS server. Purges go to the first of them.
# Prints each check and fails when one does not hold.
#
#   lab/wordpress/nodes.sh     LARDER_BIN names another binary
export LAB_CERT=files
source "$(dirname "$0")/start.sh"
read -r nats peer1 peer2 peer3 http2 https2 http3 https3 < <(free_ports 8)
start nats nats-server --jetstream --store_dir "$work/nats" --addr 127.0.0.1 --port "$nats"
# Of a node: its number, and where it answers the others.
cluster() {
  printf '\n[cluster]\nservers = "nats://127.0.0.1:%s"\nname = "web-%s"\nacknowledge = "all"\nmode = "share"\npeer = "127.0.0.1:%s"\n' \
    "$nats" "$1" "$2"
}
# A node that has not joined yet asks WordPress before it uses what it stores.
joined() {
  "$larder" cluster status --json --admin-socket "$work/run/$1.sock" |
    python3 -c 'import json, sys
told = json.load(sys.stdin)
sys.exit(not (told["trusted"] and sum(member["live"] for member in told["members"]) == 3))'
}
{ cat "$here/larder.toml"; cluster 1 "$peer1"; } >"$work/first.toml"
ttl=10m start_larder "$work/first.toml"
ln -s larder.sock "$work/run/web-1.sock"
for node in "2 $http2 $https2 $peer2" "3 $http3 $https3 $peer3"; do
  read -r number own_http own_https peer <<<"$node"
  sed "s/127.0.0.1:$http\"/127.0.0.1:$own_http\"/; s/127.0.0.1:$https tls/127.0.0.1:$own_https tls/
    s/web-1/web-$number/; s/127.0.0.1:$peer1/127.0.0.1:$peer/" "$work/larder.toml" >"$work/web-$number.toml"
  start "web-$number" "$larder" serve "${stay[@]}" --config "$work/web-$number.toml" --admin-socket "$work/run/web-$number.sock"
done
until_ready larder joined web-1
for number in 2 3; do until_ready "web-$number" joined "web-$number"; done
LAB_NODES="$https $https2 $https3" checks nodes.mjs
