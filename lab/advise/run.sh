#!/usr/bin/env bash
# Sites with planted faults, traps and twins without faults before `larder advise`: what is planted must be found, nothing
# invented, and what is predicted must be what the advice brings. Prints each check and fails when one does not hold.
#
#   lab/advise/run.sh [SITE...]    static api django, default all; LARDER_BIN names another binary than the debug build
#   lab/advise/run.sh --smoke      half a minute: static and api, with fewer visits
source "$(dirname "$0")/../lib.sh" advise

export LARDER_BIN=$larder PYTHONPATH=$lab:$here PYTHONDONTWRITEBYTECODE=1
sites=("${@:-static api django}")
if [ "${1:-}" = --smoke ]; then
  export SMOKE=1
  sites=(static api)
fi
if [[ " ${sites[*]} " == *" django "* ]]; then
  here=$lab/django python_packages
  export DJANGO_PYTHON=$python
fi
python3 "$lab/advise/run.py" "$work" ${sites[*]}
