#!/usr/bin/env bash
# One experiment of the lab: stacks of servers side by side, and a page about it in docs/lab.
#
#   lab/experiments/run.sh NAME [--smoke]    mixed-10k second-hop microcache wordpress-https small-and-large-vps stops bodies
#                                            disk disk-damage share crawlers grpc warmth islands
#
# --smoke takes seconds, looks whether everything runs, and writes nothing into docs. ROUNDS (5) says how often each
# measurement is repeated; LARDER_BIN names another binary than the release build (the debug build for --smoke).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export PATH=$PATH:/usr/sbin:/sbin PYTHONPATH=$root/lab:$here PYTHONDONTWRITEBYTECODE=1
name=${1:?an experiment: mixed-10k second-hop microcache wordpress-https small-and-large-vps stops bodies disk disk-damage share crawlers grpc warmth islands}
[ -d "$here/$name" ] || { echo "no experiment $name" >&2; exit 1; }
build=release
if [ "${2:-}" = --smoke ]; then
  build=debug
  export SMOKE=1 ROUNDS=1
fi
export LARDER_BIN=${LARDER_BIN:-${CARGO_TARGET_DIR:-$root/target}/$build/larder}
[ -x "$LARDER_BIN" ] || { echo "no Larder at $LARDER_BIN: build it, or name it with LARDER_BIN" >&2; exit 1; }
if [ "$name" = mixed-10k ]; then
  # The delay line, which stands between a server and the load.
  export LINE_BIN=${LINE_BIN:-${CARGO_TARGET_DIR:-$root/target}/$build/examples/line}
  [ -x "$LINE_BIN" ] || { echo "no delay line at $LINE_BIN: build testkit's example line, or name it with LINE_BIN" >&2; exit 1; }
fi
ulimit -n "$(ulimit -Hn)"
if [ -x "$here/$name/run.sh" ]; then
  exec "$here/$name/run.sh"
fi
work=$(mktemp -d --suffix="-larder-$name")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
python3 "$here/$name/run.py" "$work"
