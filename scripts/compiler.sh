#!/usr/bin/env bash
# The compiler of what `make test` tests: Cargo calls it in rustc's place, with rustc's path and arguments, for the
# crates of this workspace. One pass compiles and lints; documentation is looked at beside, but for that of tests and
# build scripts, and what is wrong with it is a warning of the build.
set -euo pipefail
# Its neighbours, whatever PATH finds: all three are of one toolchain.
[[ $1 != /* ]] || PATH=$(dirname "$1"):$PATH
case "${CARGO_PKG_NAME:-} $* " in
  " "* | *" --test "* | *" --print=file-names "* | *" build_script_build "*) exec clippy-driver "$@" ;;
esac
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
