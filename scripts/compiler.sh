#!/usr/bin/env bash
# The compiler of what `make test` tests: Cargo calls it in rustc's place, with rustc's path and arguments, for the
# crates of this workspace. One pass compiles and lints; a library's documentation is looked at beside, and what is
# wrong with it is a warning of the build.
set -euo pipefail
documented=0
for word in "$@"; do
  case $word in
    --crate-type=lib | lib) documented=1 ;;
    --test) documented=0 && break ;;
  esac
done
[ $documented = 1 ] && [ -n "${CARGO_PKG_NAME:-}" ] || exec clippy-driver "$@"
clippy-driver "$@"
words=()
shift
while [ $# -gt 0 ]; do
  case $1 in
    --emit=* | --diagnostic-width=*) ;;
    -C | --out-dir) shift ;;
    *) words+=("$1") ;;
  esac
  shift
done
exec rustdoc "${words[@]}" --document-private-items --out-dir "${CARGO_TARGET_DIR:-target}/lints"
