# shellcheck shell=sh
# shellcheck disable=SC2154 # what is set by install.sh and its other parts
# Units in systemd's folder.

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
    keep "$1.new" "$1"
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
