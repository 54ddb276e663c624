/**
 * Jupyter in a pod: scripts that inspect the image, install and start it, and the decision what to do next. The
 * scripts are fixed; data is passed only as arguments or environment variables. Pure.
 */
import { script } from '../exec/shell.ts';

/** The agent's folder in the pod's file system; removed with the container. */
export const FOLDER = '/opt/podwright';

/** Adds folders that images often put only on a login shell's PATH. */
const PRELUDE = 'PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/conda/bin"\n';

/** Prints one line per finding, `name=value`, for `parseFindings`. Runs each program, because it may be broken. */
const FINDINGS_SCRIPT = `${PRELUDE}folder=$1
for kind in lab notebook server; do
  for program in "$folder/notebook/bin/jupyter-$kind" "$(command -v "jupyter-$kind")" "$HOME/.local/bin/jupyter-$kind"; do
    [ -x "$program" ] && version=$("$program" --version 2>/dev/null) || continue
    printf 'jupyter=%s %s %s\\n' "$kind" "$program" "$version"
    break
  done
done
for name in python3 python; do
  python=$(command -v "$name") && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null || continue
  printf 'python=%s\\n' "$python"
  "$python" -c 'import venv, ensurepip' 2>/dev/null && echo venv=yes
  "$python" -m pip --version >/dev/null 2>&1 && echo pip=yes
  break
done
for name in apt-get apk microdnf dnf yum; do
  command -v "$name" >/dev/null && printf 'tool=%s\\n' "$name" && break
done
for table in /proc/net/tcp /proc/net/tcp6; do
  [ -r "$table" ] || continue
  while read -r _ address _ state _; do
    [ "$state" = 0A ] && printf 'listens=%s\\n' "\${address##*:}"
  done <"$table"
done
exit 0`;

const PIP = '--no-input --disable-pip-version-check --no-cache-dir --progress-bar off';

/** Uses the packages of the image, but installs further packages in a separate folder. */
const VENV_SCRIPT = `${PRELUDE}folder=$1 python=$2
rm -rf "$folder/notebook" && mkdir -p "$folder" &&
"$python" -m venv --system-site-packages "$folder/notebook" &&
exec "$folder/notebook/bin/python" -m pip install ${PIP} jupyterlab`;

const PIP_SCRIPT = `${PRELUDE}python=$2
export PIP_BREAK_SYSTEM_PACKAGES=1
exec "$python" -m pip install ${PIP} --user --no-warn-script-location jupyterlab`;

const TOOL_SCRIPT = `${PRELUDE}tool=$2
export DEBIAN_FRONTEND=noninteractive
case $tool in
  apt-get)
    apt-get -q update &&
    exec apt-get -q -y -o DPkg::Lock::Timeout=60 -o Dpkg::Use-Pty=0 install --no-install-recommends python3 python3-venv ca-certificates ;;
  apk) exec apk add --no-cache python3 py3-pip ;;
  *) exec "$tool" -y install python3 python3-pip ;;
esac`;

/** Passes the settings in a file with mode 0600, so that neither arguments nor environment reveal the token. */
const START_SCRIPT = `${PRELUDE}folder=$1 program=$2 port=$3
mkdir -p "$folder" || exit 1
(umask 077; rm -f "$folder/notebook.json"; printf '%s' "$PODWRIGHT_NOTEBOOK" >"$folder/notebook.json") || exit 1
unset PODWRIGHT_NOTEBOOK
cd 2>/dev/null || cd /
exec "$program" --config="$folder/notebook.json" --ip=0.0.0.0 --port="$port" --no-browser --allow-root >"$folder/notebook.log" 2>&1 </dev/null`;

const LOG_SCRIPT = `${PRELUDE}tail -n 15 "$1/notebook.log" 2>/dev/null`;

export type InstallWay = 'venv' | 'pip' | 'tool';

/** Inspects the image. */
export function findingsArgv(): string[] {
  return script(FINDINGS_SCRIPT, FOLDER);
}

/** `program`: the Python of the image, or its package tool. */
export function installArgv(way: InstallWay, program: string): string[] {
  const text = { venv: VENV_SCRIPT, pip: PIP_SCRIPT, tool: TOOL_SCRIPT }[way];
  return script(text, FOLDER, program);
}

/** Starts the server; needs the variables of `startEnvironment`. */
export function startArgv(program: string, port: number): string[] {
  return script(START_SCRIPT, FOLDER, program, String(port));
}

/** Prints the last lines of the server's log. */
export function logArgv(): string[] {
  return script(LOG_SCRIPT, FOLDER);
}

/** Settings for all generations of Jupyter servers; each ignores the names that it does not support. */
export function startEnvironment(token: string): Record<string, string> {
  const server = {
    token,
    password: '',
    port_retries: 0,
    allow_remote_access: true,
    open_browser: false,
  };
  const settings = {
    ServerApp: server,
    NotebookApp: server,
    IdentityProvider: { token },
    PasswordIdentityProvider: { hashed_password: '' },
  };
  return { PODWRIGHT_NOTEBOOK: JSON.stringify(settings) };
}

export type JupyterKind = 'lab' | 'notebook' | 'server';

export type ImageFindings = {
  /** The best Jupyter found. */
  jupyter: { kind: JupyterKind; program: string } | null;
  /** Python 3.8 or later. */
  python: string | null;
  venv: boolean;
  pip: boolean;
  /** Package tool of the image. */
  tool: string | null;
  /** TCP ports in use inside the pod. */
  listening: readonly number[];
};

export type NextStep =
  | { do: 'start'; kind: JupyterKind; program: string }
  | { do: 'install'; way: InstallWay; with: string }
  | { do: 'give_up'; reason: 'NotebookNoPython' | 'NotebookInstallFailed'; message: string };

const PAGES: Record<JupyterKind, string> = { lab: '/lab', notebook: '/tree', server: '/' };

/** Path of the first page. */
export function pathOf(kind: JupyterKind): string {
  return PAGES[kind];
}

/** Parses the output of the inspection; ignores malformed lines, because the renter controls the pod. */
export function parseFindings(text: string): ImageFindings {
  const found = text.split('\n').map((line) => /^([a-z]+)=(.*)$/.exec(line.trim()));
  const valuesOf = (name: string) => found.flatMap((m) => (m?.[1] === name ? (m[2] ?? '') : []));
  const jupyters = valuesOf('jupyter').flatMap((value) => {
    const [, kind, program] = /^(lab|notebook|server) (\/\S+) \d/.exec(value) ?? [];
    return kind === undefined || program === undefined
      ? []
      : [{ kind: kind as JupyterKind, program }];
  });
  const [python = ''] = valuesOf('python');
  return {
    jupyter: jupyters[0] ?? null,
    python: python.startsWith('/') ? python : null,
    venv: valuesOf('venv').includes('yes'),
    pip: valuesOf('pip').includes('yes'),
    tool: valuesOf('tool')[0] ?? null,
    listening: valuesOf('listens').map((hex) => Number.parseInt(hex, 16)),
  };
}

/** `tried`: ways of installing already tried in this bring-up. */
export function nextStep(findings: ImageFindings, tried: readonly InstallWay[]): NextStep {
  const { jupyter, python, venv, pip, tool } = findings;
  if (jupyter !== null) return { do: 'start', ...jupyter };
  if (python !== null && venv && !tried.includes('venv')) {
    return { do: 'install', way: 'venv', with: python };
  }
  if (python !== null && pip && !venv && !tried.includes('pip')) {
    return { do: 'install', way: 'pip', with: python };
  }
  if (tool !== null && !tried.includes('tool') && !venv) {
    return { do: 'install', way: 'tool', with: tool };
  }
  if (python === null) {
    const message =
      'The image has no Python 3.8 or later, and no package tool that could install it';
    return { do: 'give_up', reason: 'NotebookNoPython', message };
  }
  const message =
    tried.length === 0
      ? 'The Python of the image has neither venv nor pip, and no package tool could install them'
      : 'The installation finished, but jupyter-lab does not run';
  return { do: 'give_up', reason: 'NotebookInstallFailed', message };
}

const UNREACHABLE =
  /temporary failure (?:in name )?resol|name or service not known|could not resolve|failed to establish a new connection|unable to connect|could not connect|network is unreachable|connection timed out|temporary error \(try again later\)|failed to fetch|could not find a version|no matching distribution/i;

/** Classifies a failed installation by its last lines of output. */
export function installFailure(lines: string): {
  reason: 'NotebookInstallFailed' | 'NotebookSourceUnreachable';
  message: string;
} {
  return UNREACHABLE.test(lines)
    ? {
        reason: 'NotebookSourceUnreachable',
        message: `Packages could not be fetched from inside the pod: ${lines}`,
      }
    : { reason: 'NotebookInstallFailed', message: `The installation failed: ${lines}` };
}
