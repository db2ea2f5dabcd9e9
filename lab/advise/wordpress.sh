#!/usr/bin/env bash
# The lab's WordPress before `larder advise`; started by run.sh.
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../wordpress/start.sh"
LAB_SITE=$work LARDER_BIN=$larder python3 "$lab/advise/run.py" "$work" "$LAB_RESULTS" wordpress
