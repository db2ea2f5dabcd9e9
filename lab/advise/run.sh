#!/usr/bin/env bash
# Sites with planted faults, traps and twins without faults before `larder advise`: what is planted must be found, nothing
# invented, and what is predicted must be what the advice brings. Prints each check and fails when one does not hold.
#
#   lab/advise/run.sh [SITE...]    static api django wordpress mediawiki; without a name all, and then it writes
#                                  docs/lab/advise.md. LARDER_BIN names another binary than the debug build
#   lab/advise/run.sh --smoke      half a minute: static and api, with fewer visits and few corrections
source "$(dirname "$0")/../lib.sh" advise

export LARDER_BIN=$larder PYTHONPATH=$lab:$here PYTHONDONTWRITEBYTECODE=1
export LAB_RESULTS=${LAB_RESULTS:-$work/results}
mkdir -p "$LAB_RESULTS"
sites=("$@")
[ $# -gt 0 ] || sites=(static api django wordpress mediawiki)
if [ "${1:-}" = --smoke ]; then
  export SMOKE=1
  sites=(static api)
fi
plain=() applications=()
for site in "${sites[@]}"; do
  case $site in
    wordpress | mediawiki) applications+=("$site") ;;
    *) plain+=("$site") ;;
  esac
done
if [[ " ${plain[*]} " == *" django "* ]]; then
  here=$lab/django python_packages
  export DJANGO_PYTHON=$python
fi
status=0
[ ${#plain[@]} = 0 ] || python3 "$lab/advise/run.py" "$work" "$LAB_RESULTS" "${plain[@]}" || status=1
for site in "${applications[@]}"; do "$lab/advise/$site.sh" || status=1; done
[ $# -gt 0 ] || python3 "$lab/advise/report.py" "$LAB_RESULTS"
exit $status
