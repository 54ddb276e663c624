# shellcheck shell=sh
# Shared by install.sh and uninstall.sh: paths, services of each component, and messages. Sourced, not run.

# shellcheck disable=SC2034 # most are used by only one of the two
{
  readonly OPT=/opt/podwright
  readonly RELEASES=$OPT/releases
  # The release that the services run, and the previous one.
  readonly CURRENT_LINK=$OPT/current
  readonly PREVIOUS_LINK=$OPT/previous
  # Exists while the current release is on probation; contains the release to roll back to, if any.
  readonly TRIAL=$OPT/trial
  readonly ETC=/etc/podwright
  readonly CREDENTIALS=$ETC/credentials
  readonly UNITS=/etc/systemd/system
  readonly SLICE=podwright.slice
  # File in each folder that the installer has created; it contains the folder's path. uninstall.sh removes only such
  # folders.
  readonly MARKER=.podwright-installed
  # Service that switches the agent's release. It waits for LOCK and holds it meanwhile.
  readonly AGENT_UPDATE=podwright-agent-update
  readonly ALL_COMPONENTS='agent validator central'
  readonly LOCK=/run/podwright-install.lock
  readonly DOCKER_SOCKET=/var/run/docker.sock
  dry_run=no
}

# Allows one installation at a time. The lock is released when the shell ends.
hold_lock() {
  if [ ! -w "$(dirname "$LOCK")" ]; then fail "$(dirname "$LOCK") is missing or not writable: it must contain the lock file of installations."; fi
  exec 9>>"$LOCK"
  flock -n 9 || fail 'Another installation is running on this host; wait until it ends.'
}

# Prints the services of a component. The last service has the component's name; its unit exists while the component
# is installed.
services_of() {
  case $1 in
    agent) echo podwright-kernel-log.service podwright-ssh-gateway.service podwright-agent.service ;;
    validator) echo podwright-validator.service ;;
    central) echo podwright-central.service ;;
  esac
}

# Prints the services of a component, and its units that are started on demand.
units_of() {
  [ "$1" != agent ] || echo "$AGENT_UPDATE.path" "$AGENT_UPDATE.service"
  services_of "$1"
}

# Prints the components that are installed on this host, which are the components with a unit.
installed() {
  for component in $ALL_COMPONENTS; do
    [ ! -e "$UNITS/podwright-$component.service" ] || printf '%s ' "$component"
  done
}

# Prints the data folders of a component, where systemd stores them: folders of a dynamic user are in `private`.
folders_of() {
  case $1 in
    agent) echo /var/lib/podwright /var/cache/podwright-agent /var/cache/podwright-ssh-gateway ;;
    *) echo "/var/lib/private/podwright-$1" "/var/cache/private/podwright-$1" ;;
  esac
}

# Prints the link that systemd creates to a folder in `private`; nothing for other folders.
link_to() { printf '%s\n' "$1" | sed -n 's|/private/|/|p'; }

is_there() { [ -e "$1" ] || [ -L "$1" ]; }

# Succeeds for a folder that the installer has created at this path. Fails for a link, and for a folder that was moved
# here.
is_marked() { [ ! -L "$1" ] && [ -d "$1" ] && [ "$(cat "$1/$MARKER" 2>/dev/null)" = "$1" ]; }

is_component() {
  case " $ALL_COMPONENTS " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# Prints the value of a variable in a component's variable file; nothing if the variable is not set.
value_in() { sed -n "s/^$2=[\"']\{0,1\}\([^\"']*\)[\"']\{0,1\}[[:space:]]*\$/\1/p" "$1" 2>/dev/null | tail -n 1; }
variable() { value_in "$ETC/$1.env" "$2"; }

# Renames a written file durably: its content is on disk before the rename, the new name afterwards.
keep() {
  sync "$1"
  mv "$1" "$2"
  sync "$(dirname "$2")"
}

# Prints the number of containers of this host's executor, running or not; fails if the engine does not respond.
count_pods() {
  socket=$(variable agent AGENT_DOCKER_SOCKET)
  "$CURRENT_LINK/node_modules/.bin/node" -e '
    const [socketPath, executor] = process.argv.slice(1);
    const label = ["io.podwright.pod", "io.podwright.executor=" + executor];
    const path = "/containers/json?all=1&filters=" + encodeURIComponent(JSON.stringify({ label }));
    const giveUp = () => process.exit(1);
    require("node:http")
      .get({ socketPath, path, headers: { host: "engine" }, timeout: 10000 }, async (response) => {
        if (response.statusCode !== 200) giveUp();
        console.log(JSON.parse(Buffer.concat(await response.toArray())).length);
      })
      .on("timeout", giveUp)
      .on("error", giveUp);' "${socket:-$DOCKER_SOCKET}" "$(variable agent AGENT_EXECUTOR_ID)"
}

# Runs the program of component $2 from the release in $1 with argument $3 as its service would run: with the
# variables and credentials of that release's unit and of `systemctl edit`. The program also finds its
# credentials at the service's paths. It does not use the service's compile cache.
as_service() (
  case $2 in agent) program=agent/main.ts ;; validator) program=validator/main.ts ;; central) program=validator/central/main.ts ;; esac
  settings=$(settings_of "$1/systemd" "podwright-$2.service")
  release=$1 argument=$3
  set --
  while read -r setting; do set -- "$@" "--property=$setting"; done <<TEXT
$settings
TEXT
  systemd-run --quiet --collect --wait --pipe "$@" "$release/node_modules/.bin/node" "$release/$program" "$argument"
)

# Settings in the order in which systemd reads them.
settings_of() {
  cat "$1/$2" "$UNITS/$2.d"/*.conf "/run/systemd/system/$2.d"/*.conf 2>/dev/null |
    sed -nE "/^Environment=NODE_COMPILE_CACHE=/d; s|%d|/run/credentials/$2|g
      /^(Environment|EnvironmentFile|(Load|Set)Credential|(Load|Set)CredentialEncrypted)=/p"
}

# Prints a step and runs it; with --dry-run only prints it. The first argument is the description; the further
# arguments are the command.
step() {
  what=$1 && shift
  if [ "$dry_run" = yes ]; then
    say "would $what"
  else
    say "$what"
    "$@"
  fi
}

say() { printf '%s\n' "$@"; }

# Prints the problem and the script's usage.
misused() {
  say "$1." '' >&2
  usage >&2
  exit 2
}

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}
