# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of install.sh and its other parts
# Starts and watches the services, and rolls back a release that fails.

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
    say 'Nothing to do: this release is running.'
  elif restart && with_progress "watching the services for $probation_s s" watch; then
    # Includes the links that systemctl created.
    sync -f "$UNITS"
    prove
    say "Release $(basename "$(readlink "$CURRENT_LINK")") serves: $ready"
  else
    take_back
  fi
  for component in $refused; do
    say "The $component is installed and not yet started: complete $ETC/$component.env, then repeat this command."
  done
}

all_services() { for component in $components; do services_of "$component"; done | tr '\n' ' '; }

# The agent's unit starts the service for the kernel log, which is not enabled by itself.
enabled_of() { for unit in $(services_of "$1"); do [ "$unit" = podwright-kernel-log.service ] || echo "$unit"; done; }

# Restarts all services at once, to keep the interruption of each short.
restart() {
  # shellcheck disable=SC2046
  systemctl restart $(for component in $ready; do services_of "$component"; done)
}

are_active() {
  for component in $ready; do
    for unit in $(enabled_of "$component"); do systemctl --quiet is-active "$unit" || return 1; done
  done
}

# Returns success if all services are active and systemd has not restarted them.
serves() {
  are_active || return 1
  for component in $ready; do
    for unit in $(enabled_of "$component"); do
      [ "$(systemctl show --property=NRestarts --value "$unit")" = 0 ] || return 1
    done
  done
}

# Watches the services for the probation.
watch() {
  waited=0
  while serves; do
    [ "$waited" -lt "$probation_s" ] || return 0
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
    fail "Release $bad failed, and there is no previous release. The last messages of the services are above."
  fi
  say "Release $bad failed; rolling back to $(basename "$before")."
  link "$before" "$CURRENT_LINK"
  install_units
  if restart && with_progress "watching the services for $probation_s s" watch; then
    end_trial
    fail "Release $bad was rolled back; $(basename "$before") is running again. The last messages of release $bad are above."
  fi
  fail "Release $bad was rolled back, but $(basename "$before") failed too: see journalctl."
}
