#!/usr/bin/env bash
# gRPC calls through proxies: Go's client and server are built here, then run.py measures.
source "$(dirname "${BASH_SOURCE[0]}")/../../lib.sh" experiments/grpc
quietly go-build go -C "$lab/grpc/go" build -mod=readonly -o "$work/grpc" .
python3 "$here/run.py" "$work"
