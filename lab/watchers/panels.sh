#!/usr/bin/env bash
# The panels of docs/grafana over a load of known counts: a Prometheus reads a Larder, every panel's expression is asked
# of it, and each value is compared with what clients and origin have counted. An expression that returns nothing fails.
# Prints panel, value and true number. Exit status 77: not possible here.
#
#   lab/watchers/panels.sh     LARDER_BIN names another binary, PROMETHEUS a folder with `prometheus`
source "$(dirname "$0")/../lib.sh" watchers

PATH=${PROMETHEUS:+$PROMETHEUS:}$PATH
for tool in curl openssl python3 prometheus; do
  command -v "$tool" >/dev/null || { echo "$tool is missing"; exit 77; }
done
read -r admin watcher origin < <(free_ports 3)
certificate_in_files
mkdir "$work/files"
echo 'a file' >"$work/files/a.txt"
site() {
  cat <<CONF
[[site]]
host = "$1"
origin = "app"
[[site.route]]
path = "*.txt"
files = { root = "$work/files" }
[[site.route]]
path = "/denied"
respond = { status = 403 }
CONF
}
cat >"$work/larder.toml" <<CONF
listen = ["127.0.0.1:$http", "127.0.0.1:$https tls"]
[tls]
$(echo -e "$certificate")
[memory]
size = "64MiB"
[admin]
listen = "127.0.0.1:$admin"
tokens = "$work/tokens"
[[origin]]
name = "app"
servers = ["http://127.0.0.1:$origin"]
$(site one.example)
$(site two.example)
CONF
start larder "$larder" serve "${stay[@]}" --config "$work/larder.toml" --admin-socket "$work/run/larder.sock"
until_ready larder grep -q 'larder: serving' "$work/larder.log"
cat >"$work/prometheus.yml" <<CONF
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - job_name: larder
    authorization: { credentials_file: $work/tokens/read.token }
    static_configs: [{ targets: ["127.0.0.1:$admin"] }]
CONF
start prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
  --web.listen-address="127.0.0.1:$watcher"
until_ready prometheus curl -sf "http://127.0.0.1:$watcher/-/ready"
timeout 300 python3 "$here/panels.py" "$lab/../docs/grafana/larder.json" "http://127.0.0.1:$watcher" "$http" "$origin" \
  "$work/tls/cert.pem"
