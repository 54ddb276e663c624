# shellcheck shell=sh
# What install.sh and uninstall.sh both know: where things lie, which services a component has, and words. Read by them,
# not run.

# shellcheck disable=SC2034 # most are used by one of the two only
{
  readonly OPT=/opt/podwright
  readonly RELEASES=$OPT/releases
  # The release that services run, and the one before it.
  readonly CURRENT_LINK=$OPT/current
  readonly PREVIOUS_LINK=$OPT/previous
  # There while the current release has not proved itself; holds the one to go back to then, or nothing.
  readonly TRIAL=$OPT/trial
  readonly ETC=/etc/podwright
  readonly CREDENTIALS=$ETC/credentials
  readonly UNITS=/etc/systemd/system
  readonly SLICE=podwright.slice
  # Exchanges the agent's release: the service takes the lock below, and may wait for whoever has it.
  readonly AGENT_UPDATE=podwright-agent-update
  readonly ALL_COMPONENTS='agent validator central'
  readonly LOCK=/run/podwright-install.lock
  readonly DOCKER_SOCKET=/var/run/docker.sock
  dry_run=no
}

# One at a time. The lock goes with the shell, however that ends.
hold_lock() {
  if [ ! -w "$(dirname "$LOCK")" ]; then fail "$(dirname "$LOCK") is not there, or cannot be written: it has the lock of installations."; fi
  exec 9>>"$LOCK"
  flock -n 9 || fail 'Another installation is at work on this host; wait for its end.'
}

# The services of a component. The last is named after it: while its unit is there, the component is.
services_of() {
  case $1 in
    agent) echo podwright-kernel-log.service podwright-ssh-gateway.service podwright-agent.service ;;
    validator) echo podwright-validator.service ;;
    central) echo podwright-central.service ;;
  esac
}

# Those, and what is started when it is asked for.
units_of() {
  [ "$1" != agent ] || echo "$AGENT_UPDATE.path" "$AGENT_UPDATE.service"
  services_of "$1"
}

# Components of this host: those that have a unit.
installed() {
  for component in $ALL_COMPONENTS; do
    [ ! -e "$UNITS/podwright-$component.service" ] || printf '%s ' "$component"
  done
}

is_component() {
  case " $ALL_COMPONENTS " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# The value of a variable in a component's file of variables; empty where there is none.
variable() { sed -n "s/^$2=[\"']\{0,1\}\([^\"']*\)[\"']\{0,1\}[[:space:]]*\$/\1/p" "$ETC/$1.env" 2>/dev/null | tail -n 1; }

# Gives a file that was written its name: whole on disk before, its name there when this is done.
keep() {
  sync "$1"
  mv "$1" "$2"
  sync "$(dirname "$2")"
}

# How many containers of this host's executor the engine has, running or not; fails where the engine cannot be asked.
count_pods() {
  socket=$(variable agent AGENT_DOCKER_SOCKET)
  "$CURRENT_LINK/node_modules/.bin/node" -e '
    const [socketPath, executor] = process.argv.slice(1);
    const label = ["io.podwright.pod", "io.podwright.executor=" + executor];
    const path = "/containers/json?all=1&filters=" + encodeURIComponent(JSON.stringify({ label }));
    const giveUp = () => process.exit(1);
    require("node:http")
      .get({ socketPath, path, headers: { host: "engine" }, timeout: 10000 }, async (answer) => {
        if (answer.statusCode !== 200) giveUp();
        console.log(JSON.parse(Buffer.concat(await answer.toArray())).length);
      })
      .on("timeout", giveUp)
      .on("error", giveUp);' "${socket:-$DOCKER_SOCKET}" "$(variable agent AGENT_EXECUTOR_ID)"
}

# Runs the program of the component $2, of the release in $1, with the argument $3 as its service would: with the variables and the
# credentials that the unit of that release and what `systemctl edit` has added to it name. The program finds credentials by the
# service's paths, too. What fills the service's cache is its own business.
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

# In the order in which systemd reads them.
settings_of() {
  cat "$1/$2" "$UNITS/$2.d"/*.conf "/run/systemd/system/$2.d"/*.conf 2>/dev/null |
    sed -nE "/^Environment=NODE_COMPILE_CACHE=/d; s|%d|/run/credentials/$2|g
      /^(Environment|EnvironmentFile|(Load|Set)Credential|(Load|Set)CredentialEncrypted)=/p"
}

# With --dry-run says what a step would do; else says it and does it. The first argument is what, the rest the command.
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

# In words, then by the script's own usage.
misused() {
  say "$1." '' >&2
  usage >&2
  exit 2
}

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}
