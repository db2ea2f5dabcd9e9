# shellcheck shell=bash
# Rooms: fresh Debian 12 systems, booted with a systemd of their own by systemd-nspawn where it can, in a network of their
# own that leads nowhere. Sourced by run.sh.
#
#   make_roots             what rooms are copies of, from the machine's own Debian mirror; kept in $roots
#   inside COMMAND...      in the room, two minutes at most
#   enter_room NAME ROOT   a room as ROOT (bare, site) is; sets `leader`, its first process as it is seen from here, and
#                          `room`, its root folder; `enter` makes checks work in its network
#   leave_room             ends it, and leaves the log of its Larder in $work
#
# Where nspawn cannot boot, rooms are namespaces without systemd: systemctl.sh then does what Larder's unit says, and checks
# of what only systemd does are told as skipped.
# Beside screenshots, whose folder is emptied.
roots=${LAB_ROOT_CACHE:-$lab/../target/lab/rooms}
suite=bookworm

# What is mounted has to go before its folder does.
trap 'umount --lazy "$work"/*/ 2>/dev/null || true; finish' EXIT

# Looked with, but by no means needed by Larder.
tools=(systemd systemd-sysv dbus curl procps iproute2 man-db bash-completion)
# What a WordPress has where nginx or Apache stood in front of it.
stack=(mariadb-server php-fpm php-mysql php-curl)

# The machine's own mirrors, as lines of sources.list.
mirrors() {
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
    awk -v suite="$suite" '$1 == "Debian" && ($3 == suite || $3 == suite "-security") { print "deb", $2, $3, "main" }' |
    sort -u
}

# in_root NAME ROOT COMMAND...: in a folder, with the machine's network, before there is a room. Shows its output if it fails.
in_root() {
  local log=$work/$1.log root=$2
  shift 2
  timeout 580 unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" &&
    cp /etc/resolv.conf "$1/etc/resolv.conf" && root=$1 && shift && exec chroot "$root" env DEBIAN_FRONTEND=noninteractive "$@"' \
    sh "$root" "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
}

# Two layers, the second over the first: a system with what Larder's package needs and wants in apt's cache, and what a
# WordPress needs besides. What changes here makes them anew.
make_roots() {
  local sources whole
  mkdir -p "$roots"
  exec 8>"$roots/lock"
  flock 8
  sources=$(mirrors)
  whole=$({ declare -f make_bare make_site; echo "$sources ${tools[*]} ${stack[*]}"; } | cksum | cut -d' ' -f1)
  if [ "$(cat "$roots/whole" 2>/dev/null)" != "$whole" ]; then
    rm -rf "$roots"/{whole,bare,site,site-work}
    make_bare "$sources"
    make_site
    echo "$whole" >"$roots/whole"
  fi
  exec 8>&-
}

make_bare() {
  local root=$roots/bare
  awk -v suite="$suite" '$3 == suite { print $2; exit }' <<<"$1" >"$work/mirror"
  [ -s "$work/mirror" ] || { echo "no mirror of Debian's $suite in this machine's sources of apt" >&2; return 77; }
  timeout 580 debootstrap --variant=minbase --include="$(IFS=,; echo "${tools[*]}")" "$suite" "$root" "$(cat "$work/mirror")" \
    >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; return 1; }
  echo "$1" >"$root/etc/apt/sources.list"
  # Faster; a room is not kept. No service starts while layers are made.
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/lab"
  echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/lab"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  in_root update "$root" apt-get update
  in_root upgrade "$root" apt-get upgrade
  in_root download "$root" apt-get install --download-only ca-certificates
  rm -f "$root/usr/sbin/policy-rc.d"
}

make_site() {
  local merged=$work/site-root
  mkdir -p "$roots/site" "$roots/site-work" "$merged"
  mount -t overlay overlay -o "lowerdir=$roots/bare,upperdir=$roots/site,workdir=$roots/site-work" "$merged"
  printf '#!/bin/sh\nexit 101\n' >"$merged/usr/sbin/policy-rc.d"
  chmod +x "$merged/usr/sbin/policy-rc.d"
  in_root stack "$merged" apt-get install --no-install-recommends "${stack[@]}"
  rm -f "$merged/usr/sbin/policy-rc.d"
  umount "$merged"
}

# The first process below another.
child_of() { cut -d' ' -f1 "/proc/$1/task/$1/children" 2>/dev/null; }

inside() {
  timeout 120 nsenter --target "$leader" --all --root -- env -i --chdir / HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

enter_room() {
  local lower=$roots/bare
  name=$1 room=$work/$1 booted=
  [ "$2" = bare ] || lower=$roots/site:$lower
  mkdir -p "$room" "$work/$name-layer"/{upper,work}
  mount -t overlay overlay -o "lowerdir=$lower,upperdir=$work/$name-layer/upper,workdir=$work/$name-layer/work" "$room"
  : >"$room/etc/resolv.conf"
  printf '127.0.0.1 localhost example.com www.example.com\n::1 localhost\n' >"$room/etc/hosts"
  if boot; then booted=1; else by_hand; fi
  # Checks look from the room's network, with the machine's tools.
  enter=(nsenter --target "$leader" --net --)
  export LAB_LEADER=$leader LAB_ROOM=$room LAB_BOOTED=$booted
}

boot() {
  [ -z "${LAB_BY_HAND:-}" ] && command -v systemd-nspawn >/dev/null || return 1
  SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 start "$name-boot" systemd-nspawn --directory="$room" --boot --private-network \
    --register=no --keep-unit --resolv-conf=off --timezone=off --link-journal=no --machine="larder-$name-$$" --console=pipe
  keeper=${pids[-1]}
  for _ in $(seq 300); do
    sleep 0.2
    kill -0 "$keeper" 2>/dev/null || break
    leader=$(child_of "$keeper")
    [ -n "$leader" ] || continue
    case $(inside systemctl is-system-running 2>/dev/null) in
      running | degraded) return 0 ;;
    esac
  done
  kill "$keeper" 2>/dev/null || true
  tail -n 5 "$work/$name-boot.log" >&2
  return 1
}

by_hand() {
  echo "systemd-nspawn cannot boot here: Larder's unit is done by hand, in namespaces"
  start "$name-boot" unshare --mount --pid --net --ipc --uts --fork --kill-child sh -c '
    cd "$1" && mount -t proc proc proc && mount --bind /dev dev && mount -t tmpfs tmpfs run && mount -t tmpfs tmpfs dev/shm &&
      ip link set lo up && exec chroot . bash -c "while :; do sleep 1h & wait \$!; done"' sh "$room"
  keeper=${pids[-1]}
  until_ready "$name-boot" ip_is_up
  leader=$(child_of "$keeper")
  install -m 755 "$here/systemctl.sh" "$room/usr/local/sbin/systemctl"
  inside systemd-tmpfiles --create >/dev/null 2>&1 || true
  local service
  for service in php8.2-fpm mariadb; do
    [ ! -e "$room/etc/init.d/$service" ] || inside systemctl start "$service" >>"$work/$name-boot.log" 2>&1
  done
}

ip_is_up() {
  leader=$(child_of "$keeper") && [ -n "$leader" ] && inside sh -c 'test "$$" -gt 1 && ip address show lo | grep -q 127.0.0.1'
}

leave_room() {
  if [ -n "$booted" ]; then
    inside journalctl --no-pager --unit=larder >>"$work/larder.log" || true
  else
    inside cat /run/lab.larder.said >>"$work/larder.log" 2>/dev/null || true
  fi
  # Of nspawn the first asks that the room be shut down. unshare takes its room's processes with it, and no other word.
  if [ -n "$booted" ]; then kill "$keeper"; else kill -9 "$keeper"; fi
  for _ in $(seq 200); do kill -0 "$keeper" 2>/dev/null || break; sleep 0.1; done
  wait "$keeper" 2>/dev/null || true
  enter=()
  umount "$room" 2>/dev/null || umount --lazy "$room"
  rm -rf "$work/$name-layer"
}
