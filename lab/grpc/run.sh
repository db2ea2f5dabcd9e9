#!/usr/bin/env bash
# gRPC through Larder: Go's server behind it, once by h2c and once over TLS, and Go's and Python's clients before it. Calls,
# streams of all three kinds, trailers, deadlines, failures, and 2,000 calls of which some are given up. Prints each check
# and fails when one does not hold.
#
#   lab/grpc/run.sh [CLIENT...]     go python, default both; LARDER_BIN names another binary
source "$(dirname "$0")/../lib.sh" grpc

read -r plain secure nobody < <(free_ports 3)
quietly go-build go -C "$here/go" build -mod=readonly -o "$work/grpc" .
sed "s|@PLAIN@|$plain|g; s|@SECURE@|$secure|g; s|@NOBODY@|$nobody|g" "$here/larder.toml" >"$work/filled.toml"
LAB_CERT=files start_larder "$work/filled.toml"
start plain "$work/grpc" serve "127.0.0.1:$plain"
start secure "$work/grpc" serve "127.0.0.1:$secure" "$work/tls/cert.pem" "$work/tls/key.pem"
for port in $plain $secure; do until_ready plain bash -c "</dev/tcp/127.0.0.1/$port"; done

status=0
client() {
  LAB_HTTP=127.0.0.1:$http LAB_HTTPS=127.0.0.1:$https LAB_ROOT=$work/tls/root.pem timeout 100 "$@" || status=1
}
[ $# -gt 0 ] || set -- go python
for name in "$@"; do
  case $name in
    go) client "$work/grpc" ask ;;
    python)
      python_packages
      client "$python/bin/python" "$here/python.py"
      ;;
  esac
done
! grep panicked "$work/larder.log" || status=1
exit $status
