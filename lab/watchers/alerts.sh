#!/usr/bin/env bash
# The alert rules of docs/prometheus: they are rules, each fires for what it is for and not for what is well. Exit status
# 77: not possible here.
#
#   lab/watchers/alerts.sh     PROMETHEUS names a folder with `promtool`
set -eu
cd "$(dirname "$0")/../../docs/prometheus"
PATH=${PROMETHEUS:+$PROMETHEUS:}$PATH
command -v promtool >/dev/null || { echo 'promtool is missing'; exit 77; }
promtool check rules larder-alerts.yml
promtool test rules larder-alerts-test.yml
# A rule that nothing is asked of could be anything.
grep -o 'alert: Larder[A-Za-z]*' larder-alerts.yml | sort | while read -r _ name; do
  [ "$(grep -c "alertname: $name\\b" larder-alerts-test.yml)" -ge 2 ] || { echo "no test of $name"; exit 1; }
done
