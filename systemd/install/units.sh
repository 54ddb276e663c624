# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of install.sh and its other parts
# Installs the units.

# Installs the units of the current release.
install_units() {
  changed=no
  for component in $components; do
    for unit in $(units_of "$component"); do install_unit "$unit"; done
  done
  install_unit "$SLICE"
  case " $components" in *' agent '*) allow_docker_root ;; esac
  [ "$changed" = no ] || reload
}

# An older release may lack newer units.
install_unit() { [ ! -e "$CURRENT_LINK/systemd/$1" ] || put_file "$UNITS/$1" <"$CURRENT_LINK/systemd/$1"; }

# Replaces a file atomically if its content differs.
put_file() {
  mkdir -p "$(dirname "$1")"
  cat >"$1.new"
  if cmp -s "$1.new" "$1"; then
    rm "$1.new"
  else
    keep "$1.new" "$1"
    changed=yes
  fi
}

# Lets the agent write to the engine's data folder if it is not the default one.
allow_docker_root() {
  command -v docker >/dev/null 2>&1 || return 0
  folder=$(docker info --format '{{.DockerRootDir}}' 2>/dev/null) || return 0
  [ "$folder" != /var/lib/docker ] || return 0
  put_file "$UNITS/podwright-agent.service.d/10-docker-root.conf" <<TEXT
[Service]
ReadWritePaths=-$folder
TEXT
}

# If systemd manages the engine's cgroups, a reload may remove GPUs from running containers, unless /dev/char has links
# to them.
reload() {
  if [ -e /dev/nvidia0 ] && [ ! -e /dev/char/195:0 ] &&
    [ "$(docker info --format '{{.CgroupDriver}}' 2>/dev/null)" = systemd ] && [ "$(count_pods || echo 1)" != 0 ]; then
    fail 'Units changed, and reloading them may remove the GPUs from running pods. First run, once per boot:' \
      '  nvidia-ctk system create-dev-char-symlinks --create-all' 'Then repeat this command.'
  fi
  systemctl daemon-reload
}
