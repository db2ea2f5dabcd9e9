#!/usr/bin/env bash
# Those who watch over a Larder from another machine, which is a network namespace here: Prometheus reads its figures, with
# a token over TLS and with a certificate, and neither without; HAProxy checks /readyz, and takes the daemon out while its
# site's origin is down and nothing is stored; curl asks as a kubelet does. promtool reads the page of figures, too.
# Prints each check and fails when one does not hold. Exit status 77: not possible here.
#
#   lab/watchers/run.sh     as root; LARDER_BIN names another binary, PROMETHEUS a folder with `prometheus` and `promtool`
source "$(dirname "$0")/../lib.sh" watchers

PATH=${PROMETHEUS:+$PROMETHEUS:}$PATH
for tool in ip curl openssl python3 haproxy prometheus promtool; do
  command -v "$tool" >/dev/null || { echo "$tool is missing"; exit 77; }
done
near=larder-$$-near far=larder-$$-far
at=10.84.1.1
remove() {
  finish
  ip netns del "$near" 2>/dev/null || true
  ip netns del "$far" 2>/dev/null || true
}
trap remove EXIT
ip netns add "$near" && ip netns add "$far" || { echo "no network namespaces"; exit 77; }
ip -n "$near" link add cable type veth peer name cable netns "$far"
for end in "$near 1" "$far 2"; do
  read -r space number <<<"$end"
  ip -n "$space" link set lo up
  ip -n "$space" addr add "10.84.1.$number/24" dev cable
  ip -n "$space" link set cable up
done
here() { ip netns exec "$near" "$@"; }
there() { ip netns exec "$far" "$@"; }

# An authority, the daemons' certificate and Prometheus' own.
cd "$work/tls"
quietly ca openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=lab -keyout ca.key -out ca.pem
signed() {
  quietly "$1-request" openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
  quietly "$1-sign" openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
    -extfile <(echo "subjectAltName = IP:$at") -out "$1.crt"
}
signed larder
signed prometheus
openssl rand -hex 32 >token
openssl rand -hex 32 >other
chmod 600 token other

mkdir "$work/site"
echo page >"$work/site/page"
start origin ip netns exec "$near" python3 -m http.server --directory "$work/site" --bind 127.0.0.1 8081
config() {
  cat <<CONF
listen = ":$1"
[run]
user = "root"
[health]
listen = ":$2"
origins_down = "not-ready"
[metrics]
listen = ":$3 tls"
cert = "$work/tls/larder.crt"
key = "$work/tls/larder.key"
$4
[[origin]]
name = "app"
servers = "http://127.0.0.1:8081"
[[site]]
host = "*"
origin = "app"
CONF
}
config 8080 6090 6091 "token_file = \"$work/tls/token\"" >"$work/token.toml"
config 8180 6190 6191 "client_ca = \"$work/tls/ca.pem\"" >"$work/certificate.toml"
for name in token certificate; do
  start "$name" ip netns exec "$near" "$larder" serve --config "$work/$name.toml" --admin-socket "$work/run/$name.sock" \
    --log-ring "$work/run/$name.ring"
  until_ready "$name" grep -q 'larder: serving' "$work/$name.log"
done

cat >"$work/prometheus.yml" <<CONF
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - job_name: token
    scheme: https
    authorization: { credentials_file: $work/tls/token }
    tls_config: { ca_file: $work/tls/ca.pem }
    static_configs: [{ targets: ["$at:6091"] }]
  - job_name: wrong-token
    scheme: https
    authorization: { credentials_file: $work/tls/other }
    tls_config: { ca_file: $work/tls/ca.pem }
    static_configs: [{ targets: ["$at:6091"] }]
  - job_name: certificate
    scheme: https
    tls_config: { ca_file: $work/tls/ca.pem, cert_file: $work/tls/prometheus.crt, key_file: $work/tls/prometheus.key }
    static_configs: [{ targets: ["$at:6191"] }]
  - job_name: no-certificate
    scheme: https
    tls_config: { ca_file: $work/tls/ca.pem }
    static_configs: [{ targets: ["$at:6191"] }]
CONF
start prometheus ip netns exec "$far" "$(command -v prometheus)" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
  --web.listen-address=127.0.0.1:9090
cat >"$work/haproxy.cfg" <<CONF
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
frontend clients
  bind 127.0.0.1:8000
  default_backend larder
backend larder
  option httpchk GET /readyz
  server one $at:8080 check port 6090 inter 200ms fall 2 rise 2
CONF
start haproxy ip netns exec "$far" haproxy -db -f "$work/haproxy.cfg"

failed=0
# check WORDS COMMAND...: whether the command succeeds, within half a minute.
check() {
  local words=$1
  shift
  if until_ready prometheus "$@" 2>/dev/null; then echo "ok: $words"; else echo "FAILED: $words"; failed=1; fi
}
# The value that Prometheus has of an expression.
value() {
  there curl -sf --max-time 5 --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["result"][0]["value"][1])'
}
is() { [ "$(value "$1")" = "$2" ]; }
is_more() { python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$(value "$1")" "$2"; }
status() { there curl -s --max-time 5 -o /dev/null -w '%{http_code}' "$@"; }
answers() { [ "$(status "${@:2}")" = "$1" ]; }
order() {
  curl -sf --unix-socket "$work/run/token.sock" http://localhost/api/v1/origins/order -o /dev/null \
    -H 'Content-Type: application/json' -d "{\"origin\": \"app\", \"order\": \"$1\"}"
}

kubelet=(-A kube-probe/1.31 -H 'Accept: */*')
check "a kubelet is told that it lives" answers 200 "${kubelet[@]}" "http://$at:6090/healthz"
check "a kubelet is told that it is ready" answers 200 "${kubelet[@]}" "http://$at:6090/readyz"
check "a kubelet is told nothing else" answers 404 "${kubelet[@]}" "http://$at:6090/metrics"
check "figures are refused without a token" answers 401 --cacert "$work/tls/ca.pem" "https://$at:6091/metrics"
for job in token certificate; do
  check "Prometheus reads the figures: $job" is "up{job=\"$job\"}" 1
  check "it knows the process: $job" is_more "process_start_time_seconds{job=\"$job\"}" 1000000000
  check "it counts descriptors: $job" is_more "process_max_fds{job=\"$job\"} - process_open_fds{job=\"$job\"}" 0
done
check "Prometheus reads none: wrong-token" is 'up{job="wrong-token"}' 0
check "Prometheus reads none: no-certificate" is 'up{job="no-certificate"}' 0
there curl -sf --cacert "$work/tls/ca.pem" -H "Authorization: Bearer $(cat "$work/tls/token")" \
  "https://$at:6091/metrics" >"$work/page"
# Its advice on names is advice; a page that it cannot read is an error.
promtool check metrics <"$work/page" >"$work/promtool.log" 2>&1 || [ $? = 3 ]
echo "ok: promtool reads $(grep -c '^# TYPE' "$work/page") metrics"

check "HAProxy sends clients there" answers 200 http://127.0.0.1:8000/page
order down
curl -sf --unix-socket "$work/run/token.sock" http://localhost/api/v1/purge -o /dev/null \
  -H 'Content-Type: application/json' -d '{"all": true}'
check "it is not ready" answers 503 "http://$at:6090/readyz"
there curl -s "http://$at:6090/readyz"
check "HAProxy sends nobody there" grep -q 'Server larder/one is DOWN' "$work/haproxy.log"
check "a kubelet is told that it lives still" answers 200 "${kubelet[@]}" "http://$at:6090/healthz"
order auto
check "it is ready again" answers 200 "http://$at:6090/readyz"
check "HAProxy sends clients there again" answers 200 http://127.0.0.1:8000/page
[ "$failed" = 0 ] && echo "the watchers: all checks hold"
exit "$failed"
