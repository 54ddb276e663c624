#!/bin/sh
# Installs Podwright's services on a host with systemd, from a checkout or an unpacked archive: a folder per release, one link
# that says which of them runs, units, and files of variables that are never touched again. It may be killed at any
# point and repeated: what runs is always a whole release.
set -eu
# What services of other users read is readable for them, whatever the caller's habits.
umask 022

here=$(cd "$(dirname "$0")" && pwd)
source_tree=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=installation.sh
. "$here/installation.sh"
# shellcheck source-path=SCRIPTDIR source=release.sh
. "$here/release.sh"

readonly NEEDED_MIB=1500
readonly MIN_SYSTEMD=247
readonly KEPT_RELEASES=3
# Seconds for which a new release has to serve before it counts.
probation_s=30

components=
mode=install

usage() {
  cat <<'TEXT'
Usage: sh systemd/install.sh --component agent|validator|central [--component ...] [options]
       sh systemd/install.sh [options]              upgrade what is installed
       sh /opt/podwright/current/systemd/install.sh --rollback

Looks first, and says all that is missing. Then installs this tree as a release below /opt/podwright,
switches to it, restarts the services and watches them; a release that does not serve is taken back.
Variables are in /etc/podwright/<component>.env, which is made once and never changed.

  --component NAME   agent, validator or central; without it: those that are installed
  --probation S      seconds for which the new release has to serve (30)
  --rollback         back to the release before
  --dry-run          changes nothing; prints every step
  --help             prints this text
TEXT
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      --component) is_component "${2:-}" || { usage >&2 && exit 2; }
        components="$components$2 " && shift ;;
      --probation) probation_s=$(number "${2:-}") && shift ;;
      --rollback) mode=rollback ;;
      --dry-run) dry_run=yes ;;
      --help | -h) usage && exit 0 ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  [ "$(id -u)" = 0 ] || fail 'Run this as root.'
  [ "$dry_run" = yes ] || hold_lock
  asked=$components
  components=$(for each in $ALL_COMPONENTS; do
    case " $asked$(installed)" in *" $each "*) printf '%s ' "$each" ;; esac
  done)
  [ -n "$components" ] || { usage >&2 && exit 2; }
  if [ "$mode" = rollback ]; then roll_back; else install; fi
}

number() {
  case $1 in '' | *[!0-9]*) usage >&2 && exit 2 ;; *) echo "$1" ;; esac
}

install() {
  preflight
  release=$(release_of "$source_tree")
  if [ ! -d "$RELEASES/$release" ]; then step "put release $release into $RELEASES" stage "$release"; fi
  for component in $components; do configure "$component"; done
  proven=no
  [ "$(readlink "$CURRENT_LINK" 2>/dev/null)" != "releases/$release" ] || [ -e "$TRIAL" ] || proven=yes
  check_configurations "$release"
  [ "$proven" = yes ] || step "switch to release $release" switch_to "$release"
  step 'install the units' install_units
  bring_up
  step "remove releases but the newest $KEPT_RELEASES" drop_old_releases
}

# --- before anything is touched ------------------------------------------------------------------

preflight() {
  problems=
  [ -d /run/systemd/system ] || problem 'systemd does not run here: services need it.'
  for tool in systemctl systemd-run systemd-notify flock sha256sum tar; do
    command -v "$tool" >/dev/null 2>&1 || problem "$tool is not installed."
  done
  version=$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
  [ "${version:-0}" -ge "$MIN_SYSTEMD" ] || problem "systemd $MIN_SYSTEMD or later is needed, this is ${version:-none}."
  check_space
  check_packages
  case " $components" in *' agent '*) check_agent_host ;; esac
  for component in $components; do check_port "$component"; done
  [ -n "$problems" ] || return 0
  [ "$dry_run" = no ] || { say "would stop here:$problems" && exit 1; }
  fail "This host is not ready:$problems"
}

problem() {
  problems="$problems
  - $1"
}

check_space() {
  folder=$OPT
  while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
  free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1024) }')
  [ "$free" -ge "$NEEDED_MIB" ] || problem "$folder has $free MiB free, $NEEDED_MIB are needed."
}

# Packages are taken from the tree where they are those of its lock, else fetched.
check_packages() {
  if packages_present; then
    "$source_tree/node_modules/.bin/node" --version >/dev/null 2>&1 ||
      problem 'node_modules/.bin/node does not run here: run npm run setup in the tree first.'
  else
    for tool in node npm; do
      command -v "$tool" >/dev/null 2>&1 || problem "$tool is not installed: Node.js 20 or later with npm."
    done
  fi
}

check_agent_host() {
  missing=$(sh "$here/prerequisites.sh" --check 2>&1) || problem "$missing (sh systemd/prerequisites.sh installs it)."
}

check_port() {
  case $1 in agent) default=8080 ;; validator) default=8090 ;; central) default=8000 ;; esac
  name=$(printf '%s' "$1" | tr '[:lower:]' '[:upper:]')
  port=$(variable "$1" "${name}_PORT")
  port=${port:-$default}
  ! systemctl --quiet is-active "podwright-$1.service" || return 0
  hex=$(printf ':%04X' "$port")
  # State 0A is listening.
  ! awk -v at="$hex" '$4 == "0A" && substr($2, length($2) - 4) == at { found = 1 } END { exit !found }' \
    /proc/net/tcp /proc/net/tcp6 2>/dev/null || problem "Port $port, where the $1 is to listen, is taken."
}

# --- the release ---------------------------------------------------------------------------------

# A tree that is a release already keeps its name: that of an update's is its image's digest.
release_of() {
  at=$(readlink -f "$1")
  case $at in "$RELEASES"/*) basename "$at" ;; *) release_name "$1" ;; esac
}

# Made beside and renamed: under its name a release is whole.
stage() {
  new=$RELEASES/.new
  rm -rf "$new"
  mkdir -p "$new"
  put_files "$new"
  if same_lock "$CURRENT_LINK" && [ -d "$CURRENT_LINK/node_modules" ]; then
    cp -al "$(readlink -f "$CURRENT_LINK")/node_modules" "$new/node_modules"
  else
    put_packages "$new"
  fi
  [ "$(release_name "$new")" = "$1" ] || fail "The tree changed or could not be read while it was copied."
  "$new/node_modules/.bin/node" --version >/dev/null || fail "There is no packaged Node for $(uname -sm)."
  sync -f "$new"
  mv -T "$new" "$RELEASES/$1"
}

same_lock() { cmp -s "$1/package-lock.json" "$source_tree/package-lock.json"; }

drop_old_releases() {
  current=$(readlink "$CURRENT_LINK") previous=$(readlink "$PREVIOUS_LINK" || true)
  # shellcheck disable=SC2012 # names are ours: a version and a digest
  ls -1t "$RELEASES" | tail -n "+$((KEPT_RELEASES + 1))" | while read -r old; do
    case releases/$old in "$current" | "$previous") continue ;; esac
    rm -rf "${RELEASES:?}/$old"
    # What was compiled of it goes, too; the others' is made again at their next start.
    rm -rf /var/cache/podwright-*/* /var/cache/private/podwright-*/*
  done
}

# --- configuration -------------------------------------------------------------------------------

configure() {
  [ -e "$ETC/$1.env" ] || step "write a first $ETC/$1.env" write_variables "$1"
  case $1 in
    validator) credential validator.seed /var/lib/podwright-validator/hotkey.seed hex ;;
    central)
      credential central.seed /var/lib/podwright-central/central.seed hex
      credential central.secret /var/lib/podwright-central/central.secret bytes
      ;;
  esac
}

write_variables() {
  mkdir -p "$ETC"
  cp "$here/$1.env.example" "$ETC/.$1.env.new"
  chmod 600 "$ETC/.$1.env.new"
  mv "$ETC/.$1.env.new" "$ETC/$1.env"
}

# Made once; one that the service has made for itself before is taken over, for it is who we are.
credential() {
  [ ! -e "$CREDENTIALS/$1" ] || return 0
  if [ -e "$2" ]; then
    step "take over $2 as $CREDENTIALS/$1" keep_credential "$1" cat "$2"
  else
    step "make $CREDENTIALS/$1" keep_credential "$1" "random_$3"
  fi
}

keep_credential() {
  (
    umask 077
    name=$1 && shift
    mkdir -p "$CREDENTIALS"
    "$@" >"$CREDENTIALS/.$name.new"
    sync "$CREDENTIALS/.$name.new"
    mv "$CREDENTIALS/.$name.new" "$CREDENTIALS/$name"
  )
}

random_bytes() { head -c 32 /dev/urandom; }
random_hex() { random_bytes | od -An -v -tx1 | tr -d ' \n'; }

# By the release that is to run, before anything is switched: what it refuses must not end what runs.
check_configurations() {
  ready=
  refused=
  for component in $components; do
    if [ "$dry_run" = yes ]; then
      say "would check $ETC/$component.env"
    elif answer=$(accepts "$RELEASES/$1" "$component" 2>&1); then
      ready="$ready$component "
    else
      refused="$refused$component "
      say "$ETC/$component.env is not complete: $answer"
    fi
  done
  for component in $refused; do
    ! systemctl --quiet is-active "podwright-$component.service" ||
      fail "Nothing was switched: the $component that runs would not start again with this release."
  done
}

# Read as systemd will read it, credentials included.
accepts() {
  as_service "$1" "$2" --check-config && return
  status=$?
  [ "$status" != 243 ] || echo "systemd could not load a credential that podwright-$2.service names (LoadCredential=)"
  return "$status"
}

# --- the switch ----------------------------------------------------------------------------------

# A rename: whoever looks finds the old release or the new one. On trial from before the switch until it has served; what to
# go back to is the last that has.
switch_to() {
  if [ ! -e "$TRIAL" ]; then
    readlink "$CURRENT_LINK" >"$TRIAL.new" || true
    mv "$TRIAL.new" "$TRIAL"
  fi
  link "releases/$1" "$CURRENT_LINK"
}

# The trial is over.
prove() {
  before=$(cat "$TRIAL" 2>/dev/null || true)
  if [ -n "$before" ] && [ "$before" != "$(readlink "$CURRENT_LINK")" ]; then link "$before" "$PREVIOUS_LINK"; fi
  rm -f "$TRIAL"
}

link() {
  ln -sfn "$1" "$2.new"
  mv -T "$2.new" "$2"
  sync "$OPT"
}

# Those of the current release.
install_units() {
  changed=no
  for component in $components; do
    for unit in $(units_of "$component"); do install_unit "$unit"; done
  done
  install_unit "$SLICE"
  case " $components" in *' agent '*) allow_docker_root ;; esac
  [ "$changed" = no ] || reload
}

# An older release lacks those that came later.
install_unit() { [ ! -e "$CURRENT_LINK/systemd/$1" ] || put_file "$UNITS/$1" <"$CURRENT_LINK/systemd/$1"; }

# Whole or not at all, and only when it differs.
put_file() {
  mkdir -p "$(dirname "$1")"
  cat >"$1.new"
  if cmp -s "$1.new" "$1"; then
    rm "$1.new"
  else
    mv "$1.new" "$1"
    changed=yes
  fi
}

# Pods' volumes lie elsewhere where the engine was told so.
allow_docker_root() {
  command -v docker >/dev/null 2>&1 || return 0
  folder=$(docker info --format '{{.DockerRootDir}}' 2>/dev/null) || return 0
  [ "$folder" != /var/lib/docker ] || return 0
  put_file "$UNITS/podwright-agent.service.d/10-docker-root.conf" <<TEXT
[Service]
ReadWritePaths=-$folder
TEXT
}

# With the engine's cgroups in systemd's hands a reload may take GPUs from running containers, unless links name the cards.
reload() {
  if [ -e /dev/nvidia0 ] && [ ! -e /dev/char/195:0 ] &&
    [ "$(docker info --format '{{.CgroupDriver}}' 2>/dev/null)" = systemd ] && [ "$(count_pods || echo 1)" != 0 ]; then
    fail 'Units changed, and reading them anew may take the GPUs from running pods. First, once per boot:' \
      '  nvidia-ctk system create-dev-char-symlinks --create-all' 'Then repeat this command.'
  fi
  systemctl daemon-reload
}

# Starts what can start, and takes a release back that does not serve.
bring_up() {
  [ "$dry_run" = no ] || { say "would enable and restart: $(all_services)" "would watch them for $probation_s s" && return; }
  for component in $ready; do
    # shellcheck disable=SC2046 # a list of names, one word each
    systemctl --quiet enable $(enabled_of "$component")
    [ "$component" != agent ] || systemctl --quiet enable --now "$AGENT_UPDATE.path"
  done
  if [ -z "$ready" ]; then
    prove
  elif [ "$proven" = yes ] && [ "$changed" = no ] && are_active; then
    say 'Nothing to do: this release runs.'
  elif restart && serves_for "$probation_s"; then
    prove
    say "Release $(basename "$(readlink "$CURRENT_LINK")") serves: $ready"
  else
    take_back
  fi
  for component in $refused; do
    say "The $component is installed and not started: complete $ETC/$component.env, then repeat this command."
  done
}

all_services() { for component in $components; do services_of "$component"; done | tr '\n' ' '; }

# The agent's unit wants that for the kernel's log, which is nothing by itself.
enabled_of() { for unit in $(services_of "$1"); do [ "$unit" = podwright-kernel-log.service ] || echo "$unit"; done; }

restart() {
  for component in $ready; do
    # shellcheck disable=SC2046
    systemctl restart $(services_of "$component") || return 1
  done
}

are_active() {
  for component in $ready; do
    for unit in $(enabled_of "$component"); do systemctl --quiet is-active "$unit" || return 1; done
  done
}

# Active, and not started again by systemd since.
serves() {
  are_active || return 1
  for component in $ready; do
    for unit in $(enabled_of "$component"); do
      [ "$(systemctl show --property=NRestarts --value "$unit")" = 0 ] || return 1
    done
  done
}

serves_for() {
  waited=0
  while serves; do
    [ "$waited" -lt "$1" ] || return 0
    waited=$((waited + 1))
    sleep 1
  done
  return 1
}

take_back() {
  for component in $ready; do
    for unit in $(enabled_of "$component"); do
      journalctl --unit "$unit" --lines 20 --no-pager >&2 || true
    done
  done
  bad=$(basename "$(readlink "$CURRENT_LINK")")
  before=$(cat "$TRIAL" 2>/dev/null || true)
  if [ -z "$before" ] || [ "$before" = "releases/$bad" ]; then
    fail "Release $bad does not serve, and there is none before it. Its last messages are above."
  fi
  say "Release $bad does not serve; going back to $(basename "$before")."
  link "$before" "$CURRENT_LINK"
  install_units
  if restart && serves_for "$probation_s"; then
    rm -f "$TRIAL"
    fail "Release $bad was taken back; $(basename "$before") serves again. Its last messages are above."
  fi
  fail "Release $bad was taken back, and $(basename "$before") does not serve either: see journalctl."
}

# By hand. What was current is then the one before.
roll_back() {
  before=$(readlink "$PREVIOUS_LINK" || true)
  now=$(readlink "$CURRENT_LINK" || true)
  if [ "$before" = "$now" ] || [ ! -d "$OPT/${before:-none}" ]; then fail 'There is no release to go back to.'; fi
  check_configurations "$(basename "$before")"
  proven=no
  step "switch to release $(basename "$before")" switch_to "$(basename "$before")"
  step 'install the units' install_units
  bring_up
}

main "$@"
