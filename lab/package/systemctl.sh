#!/bin/bash
# In a room without systemd, in systemctl's place: does what the units of Larder and PHP-FPM say (directories, commands;
# Larder begins as root, which it does not stay, and so needs no --keeper), and for others what their init scripts do.
# Knows the words that the lab and the pages say.
set -eu
units=/lib/systemd/system

# A unit's setting, without the signs before a command.
of() { sed -n "s/^$1=[-!@+:]*//p" "$units/$unit.service" | sed 's/ --keeper [^ ]*//'; }
runs() { [ -s "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null; }

begin() {
  ! runs || return 0
  local kind folder
  for kind in Runtime:run State:var/lib Cache:var/cache Logs:var/log; do
    folder=$(of "${kind%%:*}Directory")
    [ -z "$folder" ] || install -d -o "$(of User)" -g "$(of Group)" "/${kind#*:}/$folder"
  done
  folder=$(of CacheDirectory)
  [ -z "$folder" ] || chmod "$(of CacheDirectoryMode)" "/var/cache/$folder"
  umask "$(of UMask | grep . || echo 0022)"
  # The words of a command, as systemd takes them apart.
  # shellcheck disable=SC2046
  STATE_DIRECTORY=/var/lib/$(of StateDirectory) setsid $(of ExecStart) >>"/run/lab.$unit.said" 2>&1 </dev/null &
  echo $! >"$pid"
  # Both would say that they are ready.
  for _ in $(seq 100); do compgen -G "/run/$socket" >/dev/null && break; sleep 0.1; done
  # shellcheck disable=SC2046
  [ -z "$(of ExecStartPost)" ] || $(of ExecStartPost)
  runs
}

end() {
  runs || return 0
  kill "$(cat "$pid")"
  for _ in $(seq 400); do runs || break; sleep 0.1; done
  ! runs || { echo "$unit does not end" >&2; exit 1; }
  rm -f "$pid" "/run/$socket"
  folder=$(of RuntimeDirectory)
  [ -z "$folder" ] || rm -rf "/run/$folder"
}

do_unit() {
  unit=${2%.service} pid=/run/lab.${2%.service}.pid
  case $unit in
    larder) socket=larder/admin.sock ;;
    php*-fpm) socket=php/$unit.sock ;;
    *) service "$unit" "$1"; return ;;
  esac
  [ -e "$units/$unit.service" ] || { echo "Unit $unit.service not found." >&2; exit 5; }
  case $1 in
    start) begin ;;
    stop) end ;;
    restart) end; begin ;;
    reload) $(of ExecReload) ;;
    is-active) if runs; then echo active; else echo inactive; exit 3; fi ;;
    *) echo "not known here: systemctl $1" >&2; exit 1 ;;
  esac
}

word=$1
shift
for name in "$@"; do do_unit "$word" "$name"; done
