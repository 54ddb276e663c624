#!/bin/sh
# Removes Podwright's services from a host. Only --pods remove touches Docker objects, and only those of this executor. It can
# be killed at any point and repeated.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=installation.sh
. "$here/installation.sh"

components=
data=
pods=refuse

usage() {
  cat <<'TEXT'
Usage: sh /opt/podwright/current/systemd/uninstall.sh --keep-data | --purge [options]

Stops the services and removes their units and, with the last component, the programs.

  --keep-data        keep variables, keys, databases and the enrolment for a later installation
  --purge            delete all of these; the keys of this host are then lost
  --component NAME   agent, validator or central (default: all that are installed)
  --pods leave       continue although there are pods; they keep running, and a reinstalled agent finds them
  --pods remove      first remove the pods of this executor and their data
  --dry-run          print every step without changing anything
  --help             print this text

Without --pods the script stops if the engine has pods of this executor or does not respond.
TEXT
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      --keep-data) choose_data keep ;;
      --purge) choose_data purge ;;
      --component) is_component "${2:-}" || misused "--component must be one of $ALL_COMPONENTS, not '${2:-}'"
        components="$components$2 " && shift ;;
      --pods) case ${2:-} in leave | remove) pods=$2 && shift ;; *) misused "--pods must be leave or remove, not '${2:-}'" ;; esac ;;
      --dry-run) dry_run=yes ;;
      --help | -h) usage && exit 0 ;;
      *) misused "Unknown option '$1'" ;;
    esac
    shift
  done
  [ -n "$data" ] || misused 'Choose what happens to the data: --keep-data or --purge'
  [ "$(id -u)" = 0 ] || fail 'Run this script as root.'
  [ "$dry_run" = yes ] || hold_lock
  [ -n "$components" ] || components=$(installed)
  # --purge also deletes data that an earlier uninstallation kept.
  [ "$data" = keep ] || [ -n "$components" ] || components=$ALL_COMPONENTS
  case " $components" in *' agent '*) settle_pods ;; esac
  for component in $components; do remove "$component"; done
  step 'reload the units of systemd' systemctl daemon-reload
  [ "$data" = keep ] || for component in $components; do step "remove the data of the $component" purge "$component"; done
  if [ "$dry_run" = yes ] || [ -z "$(installed)" ]; then step "remove $OPT" rm -rf "$OPT"; fi
  [ "$data" = keep ] || [ -n "$(installed)" ] || step "remove $ETC" rm -rf "$ETC"
}

# Deleted data cannot be restored, so contradictory options are rejected.
choose_data() {
  case $data in
    '' | "$1") data=$1 ;;
    *) say '--keep-data and --purge contradict each other: use one of them.' >&2 && exit 2 ;;
  esac
}

# Runs before any service is stopped. With `--pods remove` the agent is stopped first, because it would start
# the pods again.
settle_pods() {
  [ -e "$CURRENT_LINK/node_modules/.bin/node" ] || return 0
  case $pods in
    leave) return 0 ;;
    remove)
      step 'stop the agent' systemctl stop podwright-agent.service
      step 'remove the pods of this executor' remove_pods
      ;;
    refuse)
      count=$(count_pods) || fail 'The Docker engine does not respond, so its pods are unknown: start it, or use --pods leave.'
      [ "$count" = 0 ] || fail "This host has $count pods: remove them at the marketplace, or use --pods leave or --pods remove."
      ;;
  esac
}

remove_pods() { as_service "$CURRENT_LINK" agent remove-all; }

remove() {
  for unit in $(units_of "$1"); do
    [ -e "$UNITS/$unit" ] || continue
    step "stop and remove $unit" remove_unit "$unit"
  done
  case $(installed) in '' | "$1 ") [ ! -e "$UNITS/$SLICE" ] || step "remove $SLICE" remove_unit "$SLICE" ;; esac
}

# Disables the unit before removing it, so that a kill in between leaves no dangling link.
remove_unit() {
  systemctl stop "$1"
  systemctl --quiet disable "$1" 2>/dev/null || true
  systemctl --quiet reset-failed "$1" 2>/dev/null || true
  rm -f "$UNITS/$1.d/10-docker-root.conf" "$UNITS/$1"
}

# Includes the folders of services with a dynamic user.
purge() {
  names=podwright-$1
  [ "$1" != agent ] || names='podwright podwright-agent podwright-ssh-gateway'
  for name in $names; do
    rm -rf "/var/lib/$name" "/var/lib/private/$name" "/var/cache/$name" "/var/cache/private/$name"
  done
  for unit in $(units_of "$1"); do rm -rf "${UNITS:?}/$unit.d"; done
  rm -f "$ETC/$1.env" "$CREDENTIALS/$1".*
  [ "$1" != agent ] || rm -f "$ETC/ssh-gateway.env"
}

main "$@"
