#!/usr/bin/env bash
# Larder's Debian package on a fresh Debian 12: installed, looked at, removed and purged; then with PHP-FPM and MariaDB as
# the README and the guide have it for a WordPress, whose owner sets it up and writes with a browser; upgraded; and gone
# again. Commands and settings are read out of the pages. Needs root and a Debian mirror, for what it keeps in
# target/lab/rooms (LAB_ROOT_CACHE names another folder). Prints each check and fails when one does not hold.
#
#   lab/package/run.sh                  all; LARDER_DEB names a finished package, else one is made of LARDER_BIN
#   lab/package/run.sh install          or `site`: one of its parts
#   LAB_BY_HAND=1 lab/package/run.sh    as where systemd-nspawn cannot boot
set -euo pipefail
if [ "$(id -u)" != 0 ]; then
  echo "skipped: only root makes rooms" >&2
  exit 77
fi
# What is mounted ends with the last process of this.
[ -n "${LAB_APART:-}" ] || LAB_APART=1 exec unshare --mount --propagation private "$0" "$@"
source "$(dirname "$0")/../lib.sh" package
source "$(dirname "$0")/room.sh"
: >"$work/larder.log"

make_package() {
  deb=${LARDER_DEB:-}
  if [ -z "$deb" ]; then
    (cd "$lab/.." && timeout 580 cargo xtask package --binary "$larder" --out "$work/package") >"$work/package.log" 2>&1 ||
      { tail -n 20 "$work/package.log" >&2; return 1; }
    deb=$(echo "$work"/package/larder_*.deb)
  fi
}

# The same with a higher version, and with another file that owners have changed.
make_next() {
  local tree=$work/next version
  dpkg-deb --raw-extract "$deb" "$tree"
  version=$(dpkg-deb --field "$deb" Version)+lab1
  sed -i "s/^Version: .*/Version: $version/" "$tree/DEBIAN/control"
  echo '# The next version says more here.' >>"$tree/etc/larder/larder.toml"
  dpkg-deb --root-owner-group -Zgzip -z1 --build "$tree" "$work/larder-next.deb" >/dev/null
}

install_part() {
  enter_room fresh bare
  cp "$deb" "$room/root/"
  LAB_URL=http://localhost:8780 checks install.mjs || status=1
  leave_room
}

site_part() {
  local certificate
  enter_room site site
  mkdir -p "$room/root/target/package"
  cp "$deb" "$room/root/target/package/"
  make_next
  cp "$work/larder-next.deb" "$room/root/"
  # WordPress as one unpacks it: without Debian's own way of setting it up.
  mkdir -p "$room/var/www/wordpress"
  tar -C /usr/share/wordpress --exclude=./wp-content/languages --exclude=./wp-config.php -chf - . |
    tar -C "$room/var/www/wordpress" -xf -
  inside chown -R www-data: /var/www/wordpress
  inside cp -al /var/www/wordpress /var/www/html
  cp "$lab/stamp.php" "$room/etc/lab-stamp.php"
  echo 'auto_prepend_file = /etc/lab-stamp.php' >"$room/etc/php/8.2/fpm/conf.d/99-lab.ini"
  inside systemctl restart php8.2-fpm
  inside mariadb --execute "CREATE DATABASE wordpress; CREATE USER wordpress@localhost IDENTIFIED BY 'secret'; \
    GRANT ALL ON wordpress.* TO wordpress@localhost"
  # The authority that certificates are from in place of Let's Encrypt.
  host=example.com http=80 https=443
  if [ "${LAB_CERT:-$(command -v go >/dev/null && echo acme)}" = acme ]; then
    certificate_by_acme
    cp "$work/pebble/ca.pem" "$room/etc/lab-authority.pem"
    LAB_DIRECTORY=$(sed 's/.*directory = "\([^"]*\)".*/\1/' <<<"$certificate")
    export LAB_DIRECTORY
  else
    certificate_in_files
    cp "$work"/tls/{cert,key}.pem "$room/etc/"
  fi
  cp "$work/tls/root.pem" "$room/etc/lab-root.pem"
  LAB_URL=https://example.com checks start.mjs people.mjs leave.mjs || status=1
  leave_room
}

status=0
make_package
make_roots
for part in "${@:-install site}"; do
  for one in $part; do
    case $one in
      install | site) "${one}_part" ;;
      *) echo "usage: run.sh [install] [site]" >&2; exit 2 ;;
    esac
  done
done
exit $status
