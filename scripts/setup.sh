#!/usr/bin/env bash
# Makes sure the tools are there that the checks need: `setup.sh basic` for all but the WordPress lab,
# `setup.sh wordpress` for that, `setup.sh bench` for counting instructions. As root on Debian and its kin it
# installs what is missing; otherwise it says what to install and fails.
set -euo pipefail

missing() { ! command -v "$1" >/dev/null 2>&1 && [ ! -x "/usr/sbin/$1" ]; }

packages=()
case ${1:-basic} in
  basic)
    if missing cargo; then
      echo "Rust is missing: install rustup; rust-toolchain.toml has the version" >&2
      exit 1
    fi
    missing cc && packages+=(build-essential)
    missing node && packages+=(nodejs)
    missing npm && packages+=(npm)
    # Debian has the version in its name.
    compgen -G '/usr/sbin/php-fpm*' >/dev/null || packages+=(php-fpm)
    ;;
  wordpress)
    missing apache2 && packages+=(apache2)
    missing php && packages+=(php-cli)
    missing ab && packages+=(apache2-utils)
    missing mariadbd && packages+=(mariadb-server)
    missing python3 && packages+=(python3)
    [ -d /usr/share/wordpress ] || packages+=(wordpress)
    [ -d /usr/share/wordpress/wp-content/themes/twentytwentythree ] ||
      packages+=(wordpress-theme-twentytwentythree)
    compgen -G '/usr/lib/apache2/modules/libphp*.so' >/dev/null || packages+=(libapache2-mod-php)
    # `php -m` also needs an interpreter; without one php-cli is in the list already.
    missing php || php -m | grep -qi '^mysqli$' || packages+=(php-mysql)
    ;;
  bench)
    missing valgrind && packages+=(valgrind)
    missing wrk && missing ab && packages+=(wrk)
    ;;
  *)
    echo "usage: setup.sh basic|wordpress|bench" >&2
    exit 2
    ;;
esac

[ ${#packages[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing; please install: ${packages[*]}" >&2
  exit 1
fi
echo "installing: ${packages[*]}"
# Services are the lab's own; nothing that a package brings should start by itself.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  trap 'rm -f $policy' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
