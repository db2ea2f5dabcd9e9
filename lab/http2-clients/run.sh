#!/usr/bin/env bash
# Other people's HTTP/2 clients against Larder, over TLS and, those that can, by prior knowledge on a plain listener:
# curl, nghttp and h2load, Node, Go, Python's httpx, and Chromium. Each hits and misses, uploads and downloads, is
# refused, and asks for much at once. `bodies` is Chromium, curl and wget on codings and on seeking in what is long.
# Prints each check and fails when one does not hold.
#
#   lab/http2-clients/run.sh [CLIENT...]     curl nghttp node go python chromium bodies, default all; LARDER_BIN
#                                            names another binary, SHOTS another folder for screenshots
source "$(dirname "$0")/../lib.sh" http2-clients

start origin node "$here/origin.mjs" "$work/run/origin.sock"
until_ready origin test -S "$work/run/origin.sock"
LAB_CERT=files start_larder

modules=() status=0
client() {
  LAB_URL=https://$host:$https LAB_HTTP=http://$host:$http LAB_ROOT=$work/tls/root.pem timeout 200 "$@" || status=1
}
[ $# -gt 0 ] || set -- go python curl nghttp node chromium bodies
for name in "$@"; do
  case $name in
    go)
      quietly go-build go -C "$here/go" build -mod=readonly -o "$work/go-client" .
      client "$work/go-client"
      ;;
    python)
      python_packages
      client "$python/bin/python" "$here/python.py"
      ;;
    *) modules+=("$name.mjs") ;;
  esac
done
[ ${#modules[@]} -eq 0 ] || checks "${modules[@]}" || status=1
! grep panicked "$work/larder.log" || status=1
exit $status
