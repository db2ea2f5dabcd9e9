#!/usr/bin/env bash
# gRPC calls through proxies: Go's client and server are built here, then run.py measures.
source "$(dirname "${BASH_SOURCE[0]}")/../../lib.sh" grpc
quietly go-build go -C "$here/go" build -mod=readonly -o "$work/grpc" .
python3 "$lab/experiments/grpc/run.py" "$work"
