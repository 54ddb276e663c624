/** What an image has of what a notebook needs, and what is to be done about the rest. Pure. */
import type { InstallWay } from './commands.ts';

export type JupyterKind = 'lab' | 'notebook' | 'server';

export type Look = {
  /** The best of those found. */
  jupyter: { kind: JupyterKind; program: string } | null;
  /** Its Python, 3.8 or later. */
  python: string | null;
  venv: boolean;
  pip: boolean;
  /** Its package tool. */
  tool: string | null;
  /** TCP ports that something inside the pod listens on. */
  listening: readonly number[];
};

export type NextStep =
  | { do: 'start'; kind: JupyterKind; program: string }
  | { do: 'install'; way: InstallWay; with: string }
  | { do: 'give_up'; reason: 'NotebookNoPython' | 'NotebookInstallFailed'; message: string };

const PAGES: Record<JupyterKind, string> = { lab: '/lab', notebook: '/tree', server: '/' };

/** Where its pages begin. */
export function pathOf(kind: JupyterKind): string {
  return PAGES[kind];
}

/** Reads the answer of the look script; what is not of its form is left out: the pod is the renter's. */
export function parseLook(text: string): Look {
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

/** `tried` are the ways of installing that have been gone since the bring-up began. */
export function nextStep(look: Look, tried: readonly InstallWay[]): NextStep {
  const { jupyter, python, venv, pip, tool } = look;
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
    const message = 'The image has no Python 3.8 or later, and nothing that could install it';
    return { do: 'give_up', reason: 'NotebookNoPython', message };
  }
  const message =
    tried.length === 0
      ? 'The Python of the image has neither venv nor pip, and nothing could install them'
      : 'What was installed brought no jupyter-lab that runs';
  return { do: 'give_up', reason: 'NotebookInstallFailed', message };
}

const UNREACHABLE =
  /temporary failure (?:in name )?resol|name or service not known|could not resolve|failed to establish a new connection|unable to connect|could not connect|network is unreachable|connection timed out|temporary error \(try again later\)|failed to fetch|could not find a version|no matching distribution/i;

/** Why an installation ended badly, by its last lines. */
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
