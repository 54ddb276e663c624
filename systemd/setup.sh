#!/bin/sh
# `npm run setup`: prepares a checkout to run. Installs the packages of package-lock.json if they differ, then missing
# system packages (prerequisites.sh), and builds the console. Prints nothing if there is nothing to do. A lock lets `npm start` and `npm test`
# begin at the same time on a fresh clone.
set -eu

readonly NODE_MAJOR=26
readonly LOCK=var/setup.lock
readonly LOCK_WAIT_S=1800
readonly CONSOLE=node_modules/.cache/podwright/console
# Process id of the running npm.
npm=

cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=progress.sh
. systemd/progress.sh

# --tests also installs what the tests need.
main() {
  trap 'interrupted' INT TERM HUP
  case "$#$*" in 0 | 1--tests) ;; *) fail 'Usage: npm run setup [-- --tests]' ;; esac
  hold_lock
  packages_current || install_packages
  # The descriptor is closed for the child, because a daemon that it starts would keep the lock.
  sh systemd/prerequisites.sh "$@" 9>&-
  check_node
  console_current || build_console
}

# The lock is released when this shell ends.
hold_lock() {
  # In a subshell, because a failed redirection ends the shell.
  if ! (mkdir -p var && : >>"$LOCK") 2>/dev/null; then
    packages_current && return
    fail "$(id -un) cannot write to $(pwd): run this as the owner of the checkout."
  fi
  command -v flock >/dev/null 2>&1 || return 0
  exec 9>>"$LOCK"
  flock -n 9 && return
  echo 'Another npm command is setting up this checkout; waiting for it ...'
  with_progress 'waiting for the other npm command' flock -w "$LOCK_WAIT_S" 9 || fail "The other setup did not end within $LOCK_WAIT_S s."
}

# npm writes this file last; -newer also detects a lock file changed by a pull.
packages_current() {
  [ -n "$(find node_modules/.package-lock.json -newer package-lock.json 2>/dev/null)" ]
}

install_packages() {
  echo 'Installing the npm packages of package-lock.json ...'
  with_progress 'installing the npm packages' npm_ci || fail 'npm ci failed; its messages are above.'
}

# The build replaces this file last, also if it finds that only the times of the sources have changed.
console_current() {
  [ -e "$CONSOLE/current" ] && [ -z "$(find validator/console package-lock.json -newer "$CONSOLE/current")" ]
}

build_console() {
  echo 'Building the console ...'
  with_progress 'building the console' packaged_node validator/console/build/main.ts "$CONSOLE" 9>&- ||
    fail 'The build of the console failed; its messages are above.'
}

# Ends npm, which ignores signals while it waits for the network. A shell runs a trap after its foreground process, so
# this script ends after prerequisites.sh, which waits for apt.
interrupted() {
  [ -z "$npm" ] || kill -s KILL "$npm" 2>/dev/null || true
  exit 143
}

# In an npm script, PATH begins with node_modules/.bin, whose Node the installation would remove while it runs, and
# npm_config_* has the settings of the calling npm. Both must not affect this npm.
npm_ci() {
  (
    unset npm_config_global npm_config_location npm_config_dry_run npm_config_omit \
      npm_config_only npm_config_production npm_config_package_lock_only \
      npm_config_workspace npm_config_workspaces
    exec env "PATH=$(system_path)" npm ci --include=dev --include=optional --no-audit --no-fund --no-progress --loglevel=error
  ) 9>&- &
  npm=$!
  npm_status=0
  wait "$npm" || npm_status=$?
  npm=
  return "$npm_status"
}

packaged_node() {
  if [ -e node_modules/.bin/node ]; then node_modules/.bin/node "$@"; else env "PATH=$(system_path)" node "$@"; fi
}

check_node() {
  if [ -e node_modules/.bin/node ]; then
    major=$(major_of node_modules/.bin/node)
    [ "$major" -ge "$NODE_MAJOR" ] || fail "The Node in node_modules/.bin/node does not run here: $(node_modules/.bin/node --version 2>&1 | head -n 1)"
  else
    major=$(major_of env "PATH=$(system_path)" node)
    [ "$major" -ge "$NODE_MAJOR" ] || fail "There is no packaged Node for $(uname -sm): install Node >= $NODE_MAJOR and try again."
  fi
}

# Prints the major version of a Node; 0 if that Node does not run.
major_of() {
  version=$("$@" --version 2>/dev/null) || version=v0
  version=${version#v}
  printf '%s' "${version%%.*}"
}

# PATH without the folders that npm adds for scripts.
system_path() { printf '%s' "$PATH" | tr ':' '\n' | grep -v '/node_modules/' | paste -sd: -; }

fail() {
  end_step
  printf '%s\n' "$1" >&2
  exit 1
}

main "$@"
