# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of install.sh and its other parts
# Checks of the host before install.sh changes anything.

readonly NEEDED_MIB=1500
readonly MIN_SYSTEMD=247

preflight() {
  problems=
  [ -d /run/systemd/system ] || problem 'systemd is not running: the services need it (without systemd: npm run central, npm run validator, npm run host).'
  [ -w /run ] || problem '/run is missing or not writable: it must contain the lock file of installations.'
  for tool in systemctl systemd-run systemd-notify flock sha256sum tar; do
    command -v "$tool" >/dev/null 2>&1 || problem "$tool is not installed."
  done
  version=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
  [ "${version:-0}" -ge "$MIN_SYSTEMD" ] || problem "systemd $MIN_SYSTEMD or later is needed; found ${version:-none}."
  check_space
  check_packages
  case " $components" in *' agent '*) check_agent_host ;; esac
  for component in $components; do check_port "$component"; done
  [ -n "$problems" ] || return 0
  [ "$dry_run" = no ] || { say "would stop here:$problems" "after that:" && return 0; }
  fail "This host is not ready:$problems"
}

problem() {
  problems="$problems
  - $1"
}

check_space() {
  folder=$OPT
  while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
  [ -w "$folder" ] || problem "$folder is not writable: releases are stored in $OPT."
  free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1024) }')
  [ "$free" -ge "$NEEDED_MIB" ] || problem "$folder has $free MiB free; $NEEDED_MIB are needed."
}

# The npm packages are copied from the tree if they match its lock file, else downloaded with npm.
check_packages() {
  if packages_present; then
    "$source_tree/node_modules/.bin/node" --version >/dev/null 2>&1 ||
      problem 'node_modules/.bin/node does not run on this host: run npm run setup in the tree first.'
  else
    for tool in node npm; do
      command -v "$tool" >/dev/null 2>&1 || problem "$tool is not installed: install Node.js 20 or later with npm."
    done
  fi
}

check_agent_host() {
  missing=$(sh "$here/prerequisites.sh" --check 2>&1) || problem "$missing (sh systemd/prerequisites.sh installs it)."
}

# Checks the ports of a service that does not run: that of its listener, and that of its metrics. Before the first
# installation, the variables are those of the example, from which the file is made.
check_port() {
  case $1 in agent) default=8080 ;; validator) default=8090 ;; central) default=8000 ;; esac
  name=$(printf '%s' "$1" | tr '[:lower:]' '[:upper:]')
  ! systemctl --quiet is-active "podwright-$1.service" 2>/dev/null || return 0
  file=$ETC/$1.env
  [ -e "$file" ] || file=$here/$1.env.example
  port=$(value_in "$file" "${name}_PORT")
  require_free "${port:-$default}" "$1" "${name}_PORT" "$file"
  metrics=$(value_in "$file" "${name}_METRICS_LISTEN")
  port=${metrics##*:}
  [ -z "$port" ] || require_free "$port" "$1's metrics" "${name}_METRICS_LISTEN" "$file"
}

# require_free PORT OWNER VARIABLE FILE
require_free() {
  hex=$(printf ':%04X' "$1")
  # State 0A is listening.
  ! awk -v at="$hex" '$4 == "0A" && substr($2, length($2) - 4) == at { found = 1 } END { exit !found }' \
    /proc/net/tcp /proc/net/tcp6 2>/dev/null ||
    problem "Port $1 of the $2 is already taken: choose another with $3 in $4."
}
