#!/usr/bin/env bash
# Traces as a vendor's collector gets them: over TLS with a key, read by Google's protobuf runtime and OpenTelemetry's own
# descriptions of the messages. The collector takes the first delivery only when it comes again. Prints each check and
# fails when one does not hold. Exit status 77: not possible here.
#
#   lab/watchers/traces.sh     LARDER_BIN names another binary
source "$(dirname "$0")/../lib.sh" watchers

for tool in openssl python3; do
  command -v "$tool" >/dev/null || { echo "$tool is missing"; exit 77; }
done
python3 -c 'import ensurepip, venv' 2>/dev/null || { echo "python3-venv is missing"; exit 77; }
python_packages
read -r collector origin < <(free_ports 2)
cd "$work/tls"
quietly ca openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=lab -keyout ca.key -out ca.pem
quietly request openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=collector -keyout key.pem -out request.pem
quietly sign openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
  -extfile <(echo 'subjectAltName = IP:127.0.0.1') -out cert.pem
(umask 077 && openssl rand -hex 16 >api-key)
cat >"$work/larder.toml" <<CONF
listen = "127.0.0.1:$http"
[tracing]
endpoint = "https://127.0.0.1:$collector/otlp"
ca = "$work/tls/ca.pem"
headers = { api-key = { file = "$work/tls/api-key" }, x-team = "web" }
sample = 0
[[site]]
host = "*"
origin = "http://127.0.0.1:$origin"
CONF
start larder "$larder" serve "${stay[@]}" --config "$work/larder.toml" --admin-socket "$work/run/larder.sock"
until_ready larder grep -q 'larder: serving' "$work/larder.log"
timeout 60 "$python/bin/python" "$here/traces.py" "$http" "$origin" "$collector" "$work/tls"
