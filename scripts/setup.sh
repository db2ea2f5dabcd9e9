#!/usr/bin/env bash
# Makes sure the tools are there that the checks need: `setup.sh build` for compiling alone, `setup.sh basic` for all
# but what follows, `setup.sh wordpress`, `mediawiki`, `django`, `http2-clients`, `grpc`, `dashboard`, `tools` or `watchers` for these labs,
# `setup.sh experiments` for the peers and the tools of the experiments, `setup.sh nats` for a cluster,
# `setup.sh cluster` for its checker, `setup.sh bench` for counting instructions,
# `setup.sh import` for the lab of translated configurations, `setup.sh advise` for that of advice,
# `setup.sh site` for the documentation's site, `setup.sh package` for what looks at packages, `setup.sh rooms` for the lab of packages; several words
# together too. As root on Debian and its kin it installs what is missing; otherwise it says what to install and fails.
set -euo pipefail

missing() { ! command -v "$1" >/dev/null 2>&1 && [ ! -x "/usr/sbin/$1" ]; }

packages=()
have_php() { ! missing php && php -m | grep -ix "$1" >/dev/null; }

build() {
  if missing cargo; then
    echo "Rust is missing: install rustup; rust-toolchain.toml has the version" >&2
    exit 1
  fi
  missing cc && packages+=(build-essential)
}

basic() {
  build
  nats
  missing node && packages+=(nodejs)
  missing npm && packages+=(npm)
  # Pebble, the authority that orders of certificates are tested against.
  missing go && packages+=(golang-go)
  missing openssl && packages+=(openssl)
  # varnishadm must be able to work with Larder, and VCL is held against varnishd, its modules included.
  missing varnishadm && packages+=(varnish)
  compgen -G '/usr/lib/*/varnish/vmods/libvmod_xkey.so' >/dev/null || packages+=(varnish-modules)
  compgen -G '/usr/lib/*/varnish/vmods/libvmod_digest.so' >/dev/null || packages+=(varnish-vmod-digest)
  compgen -G '/usr/lib/*/varnish/vmods/libvmod_re2.so' >/dev/null || packages+=(varnish-re2)
  # Commands of README and guide are run.
  missing curl && packages+=(curl)
  missing jq && packages+=(jq)
  # Caches that are told of purges.
  missing squid && packages+=(squid)
  [ -e /usr/lib/nginx/modules/ngx_http_cache_purge_module.so ] || packages+=(nginx-light libnginx-mod-http-cache-purge)
  # Debian has the version in its name.
  compgen -G '/usr/sbin/php-fpm*' >/dev/null || packages+=(php-fpm)
}

browser() {
  if [ "$(node --version | tr -dc '0-9.' | cut -d. -f1)" -lt 20 ]; then
    echo "Node 20 or later is needed to drive the browser" >&2
    exit 1
  fi
  missing openssl && packages+=(openssl)
  missing chromium && packages+=(chromium fonts-dejavu-core)
  missing certutil && packages+=(libnss3-tools)
}

php_site() {
  browser
  compgen -G '/usr/sbin/php-fpm*' >/dev/null || packages+=(php-fpm)
  missing php && packages+=(php-cli)
}

wordpress() {
  php_site
  missing mariadbd && packages+=(mariadb-server)
  [ -d /usr/share/wordpress ] || packages+=(wordpress)
  [ -d /usr/share/wordpress/wp-content/themes/twentytwentythree ] ||
    packages+=(wordpress-theme-twentytwentythree)
  have_php mysqli || packages+=(php-mysql)
  # What WordPress asks itself with: it alone finds names of `localhost` without a name server.
  have_php curl || packages+=(php-curl)
  have_php gd || packages+=(php-gd)
}

mediawiki() {
  php_site
  [ -d /usr/share/mediawiki ] || packages+=(mediawiki)
  have_php pdo_sqlite || packages+=(php-sqlite3)
  have_php mbstring || packages+=(php-mbstring)
  have_php intl || packages+=(php-intl)
  have_php xml || packages+=(php-xml)
}

python() {
  missing python3 && packages+=(python3)
  python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
}

# The documentation's site: Zensical comes from PyPI, the man pages go through mandoc.
site() {
  build
  python
  missing npm && packages+=(npm)
  missing curl && packages+=(curl)
  missing mandoc && packages+=(mandoc)
}

django() {
  browser
  python
}

# The clients that ask over HTTP/2; h2load comes with nghttp.
http2-clients() {
  browser
  python
  missing go && packages+=(golang-go)
  missing curl && packages+=(curl)
  missing wget && packages+=(wget)
  missing nghttp && packages+=(nghttp2-client)
}

# gRPC's clients and server.
grpc() {
  python
  missing go && packages+=(golang-go)
}

dashboard() {
  browser
  missing curl && packages+=(curl)
}

tools() {
  missing tmux && packages+=(tmux)
  missing curl && packages+=(curl)
}

# Those who watch over a daemon from another machine.
watchers() {
  missing ip && packages+=(iproute2)
  missing curl && packages+=(curl)
  missing openssl && packages+=(openssl)
  python
  missing haproxy && packages+=(haproxy)
  missing prometheus && packages+=(prometheus)
}

# Servers that the articles compared, and the tools that they used. Those whose commands others bring as well are asked for
# by what is theirs alone.
experiments() {
  wordpress
  missing nginx && packages+=(nginx-light)
  missing squid && packages+=(squid)
  missing haproxy && packages+=(haproxy)
  missing traffic_server && packages+=(trafficserver)
  missing apache2 && packages+=(apache2)
  missing ab && packages+=(apache2-utils)
  missing httperf && packages+=(httperf)
  missing siege && packages+=(siege)
  missing varnishd && packages+=(varnish)
  missing python3 && packages+=(python3)
}

# A server whose configurations are translated, and the application behind it.
import() {
  missing nginx && packages+=(nginx-light)
  compgen -G '/usr/sbin/php-fpm*' >/dev/null || packages+=(php-fpm)
  missing python3 && packages+=(python3)
}

# Sites before `larder advise`; those of other labs need what these need.
advise() {
  missing nginx && packages+=(nginx-light)
  missing python3 && packages+=(python3)
}

# What a cluster speaks to. The current version too, where Go is: `NATS_SERVER=$(lab/nats.sh) cargo test ...`.
nats() {
  missing nats-server && packages+=(nats-server)
}

# Clusters with faults, in network namespaces.
cluster() {
  nats
  missing ip && packages+=(iproute2)
  missing python3 && packages+=(python3)
}

bench() {
  missing valgrind && packages+=(valgrind)
  missing wrk && missing ab && packages+=(wrk)
  missing h2load && packages+=(nghttp2-client)
}

package() {
  missing lintian && packages+=(lintian)
  missing man && packages+=(man-db)
  missing mandoc && packages+=(mandoc)
  missing systemd-analyze && packages+=(systemd)
  missing zsh && packages+=(zsh)
  missing fish && packages+=(fish)
}

# The lab of packages: fresh systems that boot, with a WordPress and a browser.
rooms() {
  missing debootstrap && packages+=(debootstrap)
  missing systemd-nspawn && packages+=(systemd-container)
  missing ip && packages+=(iproute2)
  missing curl && packages+=(curl)
  [ -d /usr/share/wordpress ] || packages+=(wordpress)
  browser
}

for word in "${@:-basic}"; do
  case $word in
    # Each ends with whether something was missing, which is no failure.
    build | basic | wordpress | mediawiki | django | http2-clients | grpc | dashboard | tools | watchers | experiments | import | advise | nats | cluster | bench | package | rooms | site) $word || true ;;
    *)
      echo "usage: setup.sh build|basic|wordpress|mediawiki|django|http2-clients|grpc|dashboard|tools|watchers|experiments|import|advise|nats|cluster|bench|package|rooms|site..." >&2
      exit 2
      ;;
  esac
done

[ ${#packages[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing; please install: ${packages[*]}" >&2
  exit 1
fi
# One at a time: several steps of the checks come here at once, and dpkg knows one only.
exec 9>"${TMPDIR:-/tmp}/larder-setup.lock"
flock 9
echo "installing: ${packages[*]}"
# Services are the lab's own; nothing that a package brings should start by itself.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  trap 'rm -f $policy' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq 9>&-
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null 9>&-
