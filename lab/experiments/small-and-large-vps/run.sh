#!/usr/bin/env bash
# Seed 002, on the real WordPress: filled here, then started within machines of two sizes by run.py.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../wordpress/start.sh"
# PHP and its database begin anew for each stack, within that stack's memory.
for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
  kill "${pids[i]}"
  wait "${pids[i]}" || true
done
pids=()
python3 "$lab/experiments/small-and-large-vps/run.py" "$work" "$db_user"
