#!/usr/bin/env bash
# Starts WordPress and Larder, runs test.py through Larder, and ends both. LARDER_BIN names the binary
# (default: the debug build).
set -euo pipefail
# Long enough for no page to become stale between two requests of the test.
source "$(dirname "$0")/start.sh" debug 10m

LARDER_URL=http://$address python3 "$here/test.py"
