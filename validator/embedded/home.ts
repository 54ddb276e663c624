/** The folder of a marketplace on this machine: what lies where, and how secrets in it are made. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { makeFolder } from '#shared/runtime/files.ts';

export type Home = ReturnType<typeof homeAt>;

/** Marks a folder as ours, so that `--fresh` never empties another. */
const MARKER = '.podwright-home';

/** What set-up and benchmarks keep in `var/`, which is also the default home; and our marker. */
const KEPT = /^(setup\..*|bench\.json|\.podwright-home)$/;

/** Paths only; nothing is touched. */
export function homeAt(folder: string) {
  const root = resolve(folder);
  return {
    root,
    marker: join(root, MARKER),
    demoFile: join(root, 'demo.json'),
    accountFile: join(root, 'demo-account.json'),
    centralDatabase: join(root, 'central.db'),
    centralSecret: join(root, 'central.secret'),
    centralSeed: join(root, 'central.seed'),
    centralObjects: join(root, 'objects'),
    centralBackups: join(root, 'backups'),
    validatorStore: join(root, 'validator.db'),
    validatorSeed: join(root, 'validator.seed'),
    /** Of the gateway: its certificate's key. */
    validator: join(root, 'validator'),
    providerSeed: join(root, 'provider.seed'),
    sshPrivateKey: join(root, 'id_ed25519'),
    sshPublicKey: join(root, 'id_ed25519.pub'),
    logs: join(root, 'logs'),
    log: (name: string) => join(root, 'logs', `${name}.log`),
    /** The variables that a process was started with, as a shell reads them. */
    variables: (name: string) => join(root, `${name}.env`),
    lock: join(root, 'marketplace.lock'),
    agents: join(root, 'agents'),
    agent: (executorId: string) => join(root, 'agents', executorId),
  };
}

/** The agents whose variables lie in the home, `agent-1` first. */
export function agentNames({ root }: Home): string[] {
  return readdirSync(root)
    .flatMap((name) => /^(agent-\d)\.env$/.exec(name)?.[1] ?? [])
    .sort();
}

/** Creates the folder with mode 0700. Throws ConfigError for one that cannot be made or holds other things. */
export function prepareHome(home: Home): void {
  const present = statSync(home.root, { throwIfNoEntry: false });
  if (present !== undefined && !present.isDirectory()) {
    throw new ConfigError(`${home.root} is not a folder: choose another with --home`);
  }
  try {
    makeFolder(home.root);
  } catch (error) {
    throw new ConfigError(`--home: ${home.root} cannot be made: ${messageOf(error)}`);
  }
  if (existsSync(home.marker)) return;
  const strangers = readdirSync(home.root).filter((name) => !KEPT.test(name));
  if (strangers.length > 0) {
    throw new ConfigError(
      `${home.root} holds other files (${strangers[0]}, …): choose an empty folder with --home`,
    );
  }
  writePrivateFile(home.marker, '');
}

/** Empties a folder that `prepareHome` has marked, the marker last so that a crash leaves it ours. */
export function emptyHome(home: Home): void {
  for (const name of readdirSync(home.root)) {
    if (join(home.root, name) === home.lock || KEPT.test(name)) continue;
    rmSync(join(home.root, name), { recursive: true, force: true });
  }
}

/** Whole or not at all: written beside, synced, renamed. Mode 0600. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  const beside = `${path}.new`;
  const file = openSync(beside, 'w', 0o600);
  try {
    writeSync(file, typeof content === 'string' ? Buffer.from(content) : content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(beside, path);
}

/** The content of `path`, made by `create` on the first start. */
export function readOrCreateFile(path: string, create: () => string | Uint8Array): Buffer {
  if (!existsSync(path)) writePrivateFile(path, create());
  return readFileSync(path);
}

/** The variables that a process of a local marketplace was started with, in a file that a shell can read (`set -a`). Pure. */

export type Variables = Readonly<Record<string, string>>;

const LINE = /^([A-Z][A-Z0-9_]*)='((?:[^']|'\\'')*)'$/gm;

/** `NAME='value'` lines. */
export function shellVariables(variables: Variables): string {
  const quoted = (value: string) => `'${value.replaceAll("'", "'\\''")}'`;
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(value)}\n`)
    .join('');
}

/** What `shellVariables` wrote; any other line is passed over. */
export function variablesIn(text: string): Variables {
  const found = [...text.matchAll(LINE)].map(
    ([, name = '', value = '']) => [name, value.replaceAll("'\\''", "'")] as const,
  );
  return Object.fromEntries(found);
}
