#!/bin/sh
# `npm run setup`: brings a checkout to where it can run. Installs the packages of the lock when they
# are not those, then what the machine lacks (prerequisites.sh). Silent when there is nothing to do,
# and one at a time, so that `npm start` and `npm test` may begin together on a fresh clone.
set -eu

readonly NODE_MAJOR=26
readonly LOCK=var/setup.lock
readonly LOCK_WAIT_S=1800

cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=progress.sh
. systemd/progress.sh

# With --tests also what the tests need.
main() {
  case "$#$*" in 0 | 1--tests) ;; *) fail 'Usage: npm run setup [-- --tests]' ;; esac
  hold_lock
  packages_current || install_packages
  # Closed for the child: a daemon it starts would otherwise hold the lock for good.
  sh systemd/prerequisites.sh "$@" 9>&-
  check_node
}

# The lock is free again when this shell ends, however it ends.
hold_lock() {
  # A subshell, for a redirection that fails ends the shell it is in.
  if ! (mkdir -p var && : >>"$LOCK") 2>/dev/null; then
    packages_current && return
    fail "$(pwd) cannot be written by $(id -un): run this as the owner of the checkout."
  fi
  command -v flock >/dev/null 2>&1 || return 0
  exec 9>>"$LOCK"
  flock -n 9 && return
  echo 'Another npm command is setting up this checkout; waiting for it ...'
  tell 'waiting for the other npm command' flock -w "$LOCK_WAIT_S" 9 || fail "The other set-up did not end within $LOCK_WAIT_S s."
}

# npm writes this file last; -newer also notices a lock changed by a pull.
packages_current() {
  [ -n "$(find node_modules/.package-lock.json -newer package-lock.json 2>/dev/null)" ]
}

install_packages() {
  echo 'Installing the npm packages of package-lock.json ...'
  tell 'installing the npm packages' npm_ci || fail 'npm ci failed; its messages are above.'
}

# In an npm script PATH begins with node_modules/.bin, whose Node the installation removes under
# itself, and npm's own settings for that script arrive as npm_config_*: neither is meant for this one.
npm_ci() {
  (
    unset npm_config_global npm_config_location npm_config_dry_run npm_config_omit \
      npm_config_only npm_config_production npm_config_package_lock_only \
      npm_config_workspace npm_config_workspaces
    PATH="$(system_path)" npm ci --include=dev --include=optional --no-audit --no-fund --no-progress --loglevel=error 9>&-
  )
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

# 0 for one that does not run.
major_of() {
  version=$("$@" --version 2>/dev/null) || version=v0
  version=${version#v}
  printf '%s' "${version%%.*}"
}

# PATH without the folders npm puts in front for its scripts.
system_path() { printf '%s' "$PATH" | tr ':' '\n' | grep -v '/node_modules/' | paste -sd: -; }

fail() {
  end_step
  printf '%s\n' "$1" >&2
  exit 1
}

main "$@"
