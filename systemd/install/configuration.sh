# shellcheck shell=sh
# shellcheck disable=SC2154 # what is set by install.sh and its other parts
# Files of variables and keys: made once, and looked at by the release that is to run.

# What a program ends with that refuses its variables.
readonly CONFIG_REFUSED=6

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
    # A key that others know us by is on disk before anybody uses it.
    keep "$CREDENTIALS/.$name.new" "$CREDENTIALS/$name"
    sync "$ETC"
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
    else
      status=0
      answer=$(accepts "$RELEASES/$1" "$component" 2>&1) || status=$?
      case $status in
        0) ready="$ready$component " ;;
        "$CONFIG_REFUSED") refused="$refused$component " && say "$ETC/$component.env is not complete: $answer" ;;
        *) refused="$refused$component " && say "The $component could not be asked about $ETC/$component.env (exit status $status): $answer" ;;
      esac
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
