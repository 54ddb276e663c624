/** Home folder of a local marketplace: its paths, and how private files in it are written. */
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

/** Marks a home folder, so that `--fresh` never empties another one. */
const MARKER = '.podwright-home';

/** Files that survive `--fresh`: the marker, and files of set-up and benchmarks in `var/`, the default home. */
const KEPT = /^(setup\..*|bench\.json|\.podwright-home)$/;

/** Returns paths without touching the disk. */
export function homeAt(folder: string) {
  const root = resolve(folder);
  return {
    root,
    marker: join(root, MARKER),
    demoFile: join(root, 'demo.json'),
    accountFile: join(root, 'demo-account.json'),
    /** Login of the account of hidden rentals, and the file that the validator reads. */
    probeAccountFile: join(root, 'probe-account.json'),
    probeAccountsFile: join(root, 'probe-accounts.json'),
    centralDatabase: join(root, 'central.db'),
    centralSecret: join(root, 'central.secret'),
    centralSeed: join(root, 'central.seed'),
    centralObjects: join(root, 'objects'),
    centralBackups: join(root, 'backups'),
    validatorStore: join(root, 'validator.db'),
    validatorSeed: join(root, 'validator.seed'),
    /** Folder of the gateway's certificate key. */
    validator: join(root, 'validator'),
    providerSeed: join(root, 'provider.seed'),
    sshPrivateKey: join(root, 'id_ed25519'),
    sshPublicKey: join(root, 'id_ed25519.pub'),
    logs: join(root, 'logs'),
    log: (name: string) => join(root, 'logs', `${name}.log`),
    /** Environment of a process as a shell file. */
    variables: (name: string) => join(root, `${name}.env`),
    lock: join(root, 'marketplace.lock'),
    agents: join(root, 'agents'),
    agent: (executorId: string) => join(root, 'agents', executorId),
  };
}

/** Names of agents with a variables file, `agent-1` first. */
export function agentNames({ root }: Home): string[] {
  return readdirSync(root)
    .flatMap((name) => /^(agent-\d)\.env$/.exec(name)?.[1] ?? [])
    .sort();
}

/** Creates the folder with mode 0700. Throws ConfigError if that fails or the folder has other files. */
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

/** Empties a folder that `prepareHome` has marked; the marker stays. */
export function emptyHome(home: Home): void {
  for (const name of readdirSync(home.root)) {
    if (join(home.root, name) === home.lock || KEPT.test(name)) continue;
    rmSync(join(home.root, name), { recursive: true, force: true });
  }
}

/** Writes a file atomically (temporary file, fsync, rename) with mode 0600. */
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

/** Reads a file; creates it with the content of `create` if it is missing. */
export function readOrCreateFile(path: string, create: () => string | Uint8Array): Buffer {
  if (!existsSync(path)) writePrivateFile(path, create());
  return readFileSync(path);
}

/** Environment variables with which a process of a local marketplace was started. */

export type Variables = Readonly<Record<string, string>>;

const LINE = /^([A-Z][A-Z0-9_]*)='((?:[^']|'\\'')*)'$/gm;

/** Formats variables as `NAME='value'` lines, which a shell can read with `set -a`. */
export function shellVariables(variables: Variables): string {
  const quoted = (value: string) => `'${value.replaceAll("'", "'\\''")}'`;
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(value)}\n`)
    .join('');
}

/** Parses lines of `shellVariables` and ignores others. */
export function variablesIn(text: string): Variables {
  const found = [...text.matchAll(LINE)].map(
    ([, name = '', value = '']) => [name, value.replaceAll("'\\''", "'")] as const,
  );
  return Object.fromEntries(found);
}
