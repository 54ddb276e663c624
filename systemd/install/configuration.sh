# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of install.sh and its other parts
# Variable files and keys: created once, and checked by the release that is about to run.

# Exit status of a program that rejects its variables.
readonly CONFIG_REFUSED=6

# Creates the folders of this installation and marks them. A folder that exists without the mark is used but stays
# unmarked: it is the user's, and uninstall.sh does not remove it.
mark_folders() {
  mark "$OPT" 755
  mark "$RELEASES" 755
  mark "$ETC" 755
  for component in $components; do
    for folder in $(folders_of "$component"); do mark "$folder" 700; done
  done
}

# The folder gets its name with the mark in it, so that an interruption leaves no folder without the mark.
mark() {
  if is_there "$1"; then return; fi
  link=$(link_to "$1")
  # systemd moves a folder that is at the place of its link.
  if [ -n "$link" ] && is_there "$link"; then return; fi
  case $1 in */private/*) [ -d "$(dirname "$1")" ] || mkdir -m 700 "$(dirname "$1")" ;; esac
  mkdir -p "$1.installing"
  printf '%s\n' "$1" >"$1.installing/$MARKER"
  chmod "$2" "$1.installing"
  sync "$1.installing/$MARKER"
  mv -T "$1.installing" "$1"
  sync "$(dirname "$1")"
}

configure_all() { for component in $components; do configure "$component"; done; }

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
  keep "$ETC/.$1.env.new" "$ETC/$1.env"
}

# Creates a key once. A key that the service created before is kept, because it is the service's identity.
credential() {
  [ ! -e "$CREDENTIALS/$1" ] || return 0
  if [ -e "$2" ]; then
    step "copy $2 to $CREDENTIALS/$1" keep_credential "$1" cat "$2"
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
    # The key must be on disk before it is used.
    keep "$CREDENTIALS/.$name.new" "$CREDENTIALS/$name"
    sync "$ETC"
  )
}

random_bytes() { head -c 32 /dev/urandom; }
random_hex() { random_bytes | od -An -v -tx1 | tr -d ' \n'; }

# Checks the variables with the new release before switching, so that an invalid file does not end running services.
check_configurations() {
  ready=
  refused=
  for component in $components; do
    if [ "$dry_run" = yes ]; then
      say "would check $ETC/$component.env"
    else
      status=0
      answer=$(accepts "$RELEASES/$1" "$component" 2>&1) || status=$?
      case $status in
        0) ready="$ready$component " ;;
        "$CONFIG_REFUSED") refused="$refused$component " && say "$ETC/$component.env is not complete: $answer" ;;
        *) refused="$refused$component " && say "The $component failed to check $ETC/$component.env (exit status $status): $answer" ;;
      esac
    fi
  done
  for component in $refused; do
    ! systemctl --quiet is-active "podwright-$component.service" ||
      fail "Nothing was switched: the running $component would not start with this release."
  done
}

# Reads the variables as systemd does, including credentials.
accepts() {
  as_service "$1" "$2" --check-config && return
  status=$?
  [ "$status" != 243 ] || echo "systemd could not load a credential that podwright-$2.service names (LoadCredential=)"
  return "$status"
}
