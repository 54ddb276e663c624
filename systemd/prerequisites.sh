#!/bin/sh
# Installs the packages that Podwright needs on Debian and Ubuntu, and starts the Docker engine. Safe to repeat: if
# nothing is missing, it changes nothing, and a running engine is never touched.
set -eu

readonly ENGINE_WAIT_S=60
readonly LOCK_WAIT_S=120
readonly DEFAULT_SOCKET=/var/run/docker.sock
readonly ENGINE_LOG=/var/log/podwright-dockerd.log
readonly SELF='sudo sh systemd/prerequisites.sh'

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=progress.sh
. "$root/systemd/progress.sh"
# The PATH of ordinary users often lacks the sbin folders, which contain dockerd and iptables.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
mode=install
for_tests=no
apt_log=
detached=

usage() {
  cat <<'TEXT'
Usage: sh systemd/prerequisites.sh [--tests] [--check | --dry-run | --help]

Installs with apt, as root, the packages that are missing: a Docker engine (docker.io), restic,
busybox-static, openssh-sftp-server, iptables, ca-certificates, libatomic1, and for tests
openssh-client, dropbear-bin (without its service) and rsync. Then starts the engine if it is not
running. DOCKER_HOST selects another engine, which is checked but never started.

  --tests    also install what the tests need: Chromium, g++, shellcheck, e2fsprogs, PostgreSQL, PgBouncer,
             Prometheus, docker-registry and systemd (none of these services is started)
  --check    print what is missing without changing anything; exit status 0 if nothing is, else 1
  --dry-run  print what would be done without changing anything
  --help     print this text
TEXT
}

main() {
  trap 'exit 143' INT TERM HUP
  [ "${1:-}" != --tests ] || { for_tests=yes && shift; }
  case "${1:-}" in
    '') ;;
    --check) mode=check ;;
    --dry-run) mode=dry-run ;;
    --help | -h) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  node=$(a_node)
  engine=$(engine_state)
  missing=$(missing_packages)
  case $mode in
    check) check ;;
    dry-run) dry_run ;;
    *) install ;;
  esac
}

check() {
  ok=0
  [ -z "$missing" ] || { say "missing: $missing" && ok=1; }
  [ "$engine" = answers ] || { say "$(engine_sentence)" && ok=1; }
  return "$ok"
}

dry_run() {
  if [ -n "$missing" ]; then
    have apt-get || fail "apt-get is not available. Install these with your package manager: $missing"
    say "would run: apt-get update" "would install: $missing"
  fi
  case $engine in
    answers) ;;
    silent) say "would start the Docker engine with: $(start_command)" ;;
    *) say "would stop here: $(engine_sentence)" ;;
  esac
  [ -n "$missing" ] || [ "$engine" != answers ] || say "nothing to do"
}

install() {
  [ "$engine" = answers ] || [ "$engine" = silent ] || fail "$(engine_sentence)"
  if [ -n "$missing" ]; then
    have apt-get || fail "These are missing. Install them with your package manager: $missing"
    is_root || fail "These are missing: $missing. Run: $SELF"
    apt_install
    # A package's install script may have started the engine.
    engine=$(engine_state)
    missing=$(missing_packages)
    [ -z "$missing" ] || fail "apt reports these as installed, but their programs are missing: $missing"
  fi
  [ "$engine" = answers ] || start_engine
}

# --- installed packages --------------------------------------------------------------------------

missing_packages() {
  list=
  if [ "$engine" = silent ] && ! have dockerd; then
    list="$list docker.io"
    # docker.io only recommends these packages, but cannot run containers without them on hosts with AppArmor
    # or without mounted cgroups.
    if [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" = Y ]; then
      have apparmor_parser || list="$list apparmor"
    fi
    mounted_cgroups || list="$list cgroupfs-mount"
  fi
  have restic || list="$list restic"
  static_busybox || list="$list busybox-static"
  sftp_server || list="$list openssh-sftp-server"
  # For hidden rentals and tests that log in to pods, and benchmarks that copy files.
  have scp || list="$list openssh-client"
  if [ "$for_tests" = yes ]; then
    postgres_server || list="$list postgresql"
    have pgbouncer || list="$list pgbouncer"
    have shellcheck || list="$list shellcheck"
    { have systemd-analyze && [ -x /lib/systemd/systemd ]; } || list="$list systemd"
    { have prometheus && have promtool; } || list="$list prometheus"
    have docker-registry || list="$list docker-registry"
    # For tests of the console: a Chromium without windows, which needs a third of the processor time.
    have chromium-headless-shell || list="$list chromium-headless-shell"
    # For tests of power failures.
    have mkfs.ext4 || list="$list e2fsprogs"
    # For tests of the GPU proof, compiled for the host.
    have g++ || list="$list g++"
  fi
  # Copied into pods in tests: an SSH server, and rsync.
  have dropbear || list="$list dropbear-bin"
  have rsync || list="$list rsync"
  if is_root; then have iptables || list="$list iptables"; fi
  libatomic || list="$list libatomic1"
  [ -e /etc/ssl/certs/ca-certificates.crt ] || list="$list ca-certificates"
  printf '%s' "${list# }"
}

have() { command -v "$1" >/dev/null 2>&1; }

is_root() { [ "$(id -u)" = 0 ]; }

systemd_runs() { [ -d /run/systemd/system ]; }

mounted_cgroups() {
  systemd_runs || [ -e /sys/fs/cgroup/cgroup.controllers ] || [ -d /sys/fs/cgroup/devices ]
}

# busybox must be statically linked, because it is the only program in some images.
static_busybox() { have busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1; }

sftp_server() {
  some_file /usr/lib/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/openssh/sftp-server
}

postgres_server() { have initdb || some_file /usr/lib/postgresql/*/bin/initdb; }

# The packaged Node needs libatomic; a minimal Debian lacks it.
libatomic() { some_file /usr/lib/*/libatomic.so.1 /usr/lib64/libatomic.so.1 /usr/lib/libatomic.so.1; }

some_file() {
  for path in "$@"; do
    [ ! -e "$path" ] || return 0
  done
  return 1
}

# --- the engine ----------------------------------------------------------------------------------

# Prints one word: answers, silent (a local engine that can be started), denied, remote-silent or unknown.
engine_state() {
  case "${DOCKER_HOST:-}" in
    '' | unix://*) ;;
    tcp://* | http://*)
      ping_engine "http://${DOCKER_HOST#*://}" && echo answers || echo remote-silent
      return ;;
    *) echo unknown && return ;;
  esac
  socket=$(engine_socket)
  if ping_engine "$socket"; then
    echo answers
  elif [ -S "$socket" ] && ! [ -w "$socket" ]; then
    echo denied
  elif same_socket "$socket"; then
    echo silent
  else
    echo remote-silent
  fi
}

engine_socket() {
  path=${DOCKER_HOST:-unix://$DEFAULT_SOCKET}
  printf '%s' "${path#unix://}"
}

same_socket() { [ "$1" = "$DEFAULT_SOCKET" ] || [ "$1" = /run/docker.sock ]; }

# Requests /_ping without the docker program: with Node, else with curl.
ping_engine() {
  if [ -n "$node" ]; then
    "$node" -e '
      const [at] = process.argv.slice(1);
      const { hostname: host, port } = new URL(at, "http://engine");
      const where = at.startsWith("/") ? { socketPath: at } : { host, port };
      require("node:http")
        .get({ ...where, path: "/_ping", timeout: 5000 }, (response) =>
          process.exit(response.statusCode === 200 ? 0 : 1))
        .on("timeout", () => process.exit(1))
        .on("error", () => process.exit(1));' "$1" 2>/dev/null
  elif have curl; then
    case $1 in
      /*) curl -fsS -m 5 -o /dev/null --unix-socket "$1" http://engine/_ping 2>/dev/null ;;
      *) curl -fsS -m 5 -o /dev/null "$1/_ping" 2>/dev/null ;;
    esac
  else
    fail 'Node.js >= 20 is needed to check the Docker engine; install it first.'
  fi
}

# Prints the first Node on PATH that runs, else the packaged Node, which may still lack libatomic. sudo may
# hide the caller's Node. (A space in a folder's name becomes the pattern `?`, which matches it, so that the
# list can be split at white space.)
a_node() {
  for folder in $(printf '%s' "$PATH" | tr ': ' '\n?') "$root/node_modules/.bin"; do
    [ -x "$folder/node" ] && "$folder/node" --version >/dev/null 2>&1 && echo "$folder/node" && return
  done
  return 0
}

engine_sentence() {
  case $engine in
    denied)
      echo "The Docker engine runs, but $(id -un) may not use $(engine_socket);" \
        "as root run: usermod -aG docker $(id -un), then log in again." ;;
    silent) echo "No Docker engine answers on $(engine_socket). Run: $SELF" ;;
    unknown) echo "DOCKER_HOST=$DOCKER_HOST is not supported; use unix:// or tcp://, or unset it." ;;
    *)
      echo "DOCKER_HOST=$DOCKER_HOST does not answer; start that engine," \
        "or unset DOCKER_HOST to use the local one." ;;
  esac
}

start_command() { if systemd_runs; then echo 'systemctl start docker'; else echo 'setsid dockerd'; fi; }

start_engine() {
  is_root || fail "$(engine_sentence)"
  say "Starting the Docker engine (waiting up to $ENGINE_WAIT_S s for its answer) ..."
  daemon=
  if systemd_runs; then
    systemctl start docker || engine_failed
  else
    start_daemon
  fi
  with_progress 'starting the Docker engine' await_engine
}

await_engine() {
  waited=0
  while ! ping_engine "$DEFAULT_SOCKET"; do
    waited=$((waited + 1))
    [ "$waited" -lt "$ENGINE_WAIT_S" ] || engine_failed
    [ -z "$daemon" ] || kill -0 "$daemon" 2>/dev/null || other_engine_starts || engine_failed
    sleep 1
  done
}

# Starts dockerd in a new session without our descriptors: Ctrl-C does not reach it, and it keeps neither our output nor
# an inherited lock open.
start_daemon() {
  mounted_cgroups || ! have cgroupfs-mount || cgroupfs-mount
  setsid dockerd </dev/null >>"$ENGINE_LOG" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  daemon=$!
}

# Returns success if another dockerd was started at the same time, for example by an init script; that dockerd
# will respond soon.
other_engine_starts() {
  pid=$(cat /var/run/docker.pid 2>/dev/null) && [ "$pid" != "$daemon" ] && kill -0 "$pid" 2>/dev/null
}

engine_failed() {
  end_step
  if systemd_runs; then
    journalctl -u docker -n 20 --no-pager >&2 || true
    fail 'The Docker engine did not start; its last messages are above (journalctl -u docker).'
  fi
  tail -n 20 "$ENGINE_LOG" >&2 || true
  fail "The Docker engine did not start; its last messages are above, all messages are in $ENGINE_LOG."
}

# --- apt -----------------------------------------------------------------------------------------

apt_install() {
  say "Installing with apt: $missing (this may take some minutes) ..."
  apt_log=$(mktemp)
  trap 'rm -f "$apt_log"' EXIT
  with_progress 'updating the package lists' update_lists
  # shellcheck disable=SC2086 # a list of package names, one word each
  set -- $missing
  refuse_removals "$@"
  without_own_server "$@"
  with_progress 'installing the packages' apt_quietly "$@"
  without_new_services "$@"
}

# Downloads first: a download may be interrupted, but an interrupted installation would leave packages half configured.
# So the installation runs in a separate session, which Ctrl-C does not reach, and this script ends after the
# installation.
apt_quietly() {
  apt install -y --no-install-recommends --download-only "$@" >"$apt_log" 2>&1 || apt_failed
  detached='setsid --wait'
  apt install -y --no-install-recommends "$@" >"$apt_log" 2>&1 || apt_failed
  detached=
}

# Disables the services that these packages start.
without_new_services() {
  for name in prometheus docker-registry pgbouncer; do
    case " $* " in *" $name "*) ;; *) continue ;; esac
    ! systemd_runs || systemctl disable --now "$name" >"$apt_log" 2>&1 || apt_failed
  done
}

# Debian's package postgresql creates and starts a server, unless create_main_cluster is off before the
# package is installed.
without_own_server() {
  case " $* " in *' postgresql '*) ;; *) return 0 ;; esac
  with_progress "installing PostgreSQL's tools" apt_quietly postgresql-common
  sed -i 's/^#* *create_main_cluster *=.*/create_main_cluster = false/' \
    /etc/postgresql-common/createcluster.conf
}

# Does not restart the provider's services (needrestart), and asks no questions.
apt() {
  # shellcheck disable=SC2086 # no word, or a program and its option
  DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 $detached apt-get -q \
    -o "DPkg::Lock::Timeout=$LOCK_WAIT_S" -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null
}

# DPkg::Lock::Timeout does not cover the lock of the package lists. A failure is ignored: the present lists
# may suffice; otherwise the installation reports the failure.
update_lists() {
  waited=0
  until apt update >"$apt_log" 2>&1; do
    grep -q 'Could not get lock' "$apt_log" && [ "$waited" -lt "$LOCK_WAIT_S" ] || return 0
    sleep 5
    waited=$((waited + 5))
  done
}

# Never removes the provider's packages: for example, docker.io conflicts with containerd.io and would remove it.
refuse_removals() {
  apt install -s --no-install-recommends "$@" >"$apt_log" 2>&1 || apt_failed
  removed=$(sed -n 's/^Remv \([^ ]*\).*/\1/p' "$apt_log" | grep -vx busybox | tr '\n' ' ') || true
  [ -z "$removed" ] || fail "apt would remove ${removed}to install $missing: install these yourself, or any Docker engine in place of docker.io."
}

apt_failed() {
  end_step
  tail -n 20 "$apt_log" >&2
  fail "apt could not install: $missing. Its last messages are above."
}

# --- output --------------------------------------------------------------------------------------

say() { printf '%s\n' "$@"; }

fail() {
  end_step
  printf '%s\n' "$1" >&2
  exit 1
}

main "$@"
