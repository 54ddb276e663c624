/**
 * Reads the public interface of a checkout from outside: it runs the programs, queries them over HTTP and opens the
 * databases that they create. It imports nothing of the product, so that it can read any revision.
 */
import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

/** Surface name, then the sorted lines that describe it. */
export type Snapshot = Record<string, readonly string[]>;

const READY_WITHIN_MS = 240_000;
const POLL_MS = 200;
const STOP_WITHIN_MS = 20_000;

const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const EXECUTOR = '3f9f41a6-0001-4000-8000-000000000001';

type Program = {
  main: string;
  /** Smallest environment that the program accepts. */
  environment: Record<string, string>;
};

const PROGRAMS: Record<string, Program> = {
  agent: {
    main: 'agent/main.ts',
    environment: { AGENT_EXECUTOR_ID: EXECUTOR, AGENT_GPU: 'simulated' },
  },
  'ssh-gateway': { main: 'agent/ssh-gateway/main.ts', environment: {} },
  validator: {
    main: 'validator/main.ts',
    environment: {
      VALIDATOR_CENTRAL_URL: 'http://127.0.0.1:1/api',
      VALIDATOR_CENTRAL_HOTKEY: HOTKEY,
    },
  },
  central: {
    main: 'validator/central/main.ts',
    environment: { CENTRAL_GATEWAY_URL: 'http://127.0.0.1:1', CENTRAL_GATEWAY_HOTKEY: HOTKEY },
  },
  marketplace: { main: 'validator/embedded/main.ts', environment: {} },
};

/** Programs that serve HTTP: prefix of their variables and the descriptions that they publish. */
const SERVERS: Record<string, { prefix: string; documents: readonly string[] }> = {
  agent: { prefix: 'AGENT', documents: [] },
  validator: { prefix: 'VALIDATOR', documents: [] },
  central: { prefix: 'CENTRAL', documents: ['/api/openapi.json', '/portal/openapi.json'] },
};

/** Reads every surface of the checkout in `root`, whose packages are installed. Takes about 20 s. */
export async function readInterface(root: string): Promise<Snapshot> {
  const snapshot: Record<string, readonly string[]> = { ...namesInSource(root) };
  for (const [name, program] of Object.entries(PROGRAMS)) {
    const help = await output(root, program, '--help');
    snapshot[`commands of ${name}`] = commandsIn(help);
    if (name === 'marketplace') continue;
    snapshot[`configuration of ${name}`] = lines(await output(root, program, '--print-config'));
  }
  for (const [name, server] of Object.entries(SERVERS)) {
    const program = PROGRAMS[name];
    if (program !== undefined)
      Object.assign(snapshot, await readServer(root, name, program, server));
  }
  return snapshot;
}

/** Starts one server in an empty home and reads its descriptions, metrics and databases. */
async function readServer(
  root: string,
  name: string,
  program: Program,
  { prefix, documents }: (typeof SERVERS)[string],
): Promise<Record<string, readonly string[]>> {
  const home = mkdtempSync(join(tmpdir(), 'podwright-interface-'));
  const [port, metricsPort] = [await freePort(), await freePort()];
  const child = spawn(node(root), [program.main], {
    cwd: root,
    stdio: 'ignore',
    env: {
      ...process.env,
      ...program.environment,
      [`${prefix}_HOME`]: home,
      [`${prefix}_PORT`]: String(port),
      [`${prefix}_METRICS_LISTEN`]: `127.0.0.1:${metricsPort}`,
    },
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  try {
    const found: Record<string, readonly string[]> = {};
    const metrics = await get(`http://127.0.0.1:${metricsPort}/metrics`);
    found[`metrics of ${name}`] = metricsIn(metrics);
    for (const path of documents) {
      const document: unknown = JSON.parse(await get(`http://127.0.0.1:${port}${path}`));
      found[`${path} of ${name}`] = leavesOf(withoutDescriptions(document));
    }
    child.kill('SIGTERM');
    await Promise.race([exited, sleep(STOP_WITHIN_MS)]);
    for (const file of globSync('**/*.db', { cwd: home }).toSorted()) {
      found[`${file} of ${name}`] = schemaOf(join(home, file));
    }
    found[`files of ${name}`] = globSync('**', { cwd: home }).toSorted();
    return found;
  } finally {
    child.kill('SIGKILL');
    await exited;
    rmSync(home, { recursive: true, force: true });
  }
}

/**
 * Returns the metric names, labels and environment variables in the source, including those that an idle process does
 * not report.
 */
function namesInSource(root: string): Record<string, readonly string[]> {
  const text = globSync('{agent,shared,validator}/**/*.ts', { cwd: root })
    .filter((path) => !path.endsWith('.test.ts'))
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n');
  const all = (pattern: RegExp) => unique([...text.matchAll(pattern)].map(([found]) => found));
  return {
    'metric names in the source': all(/\b(?:podwright|DCGM_FI)_[A-Za-z0-9_]+\b/g),
    'environment variables in the source': all(
      /(?<=['"`$])(?:AGENT|VALIDATOR|CENTRAL|SSH|PODWRIGHT|OTEL)_[A-Z0-9_]+(?=['"`])/g,
    ),
    'error codes in the source': all(/(?<=new ApiError\(\s*')[A-Za-z_]+(?=')/g),
  };
}

/** Returns the commands that a help text lists: the text before the first gap of two spaces. */
function commandsIn(help: string): string[] {
  return unique(
    help
      .split('\n')
      .map((line) => /^\s*(npm (?:run|start).*?|--[a-z-]+.*?)(?:\s{2,}.*)?$/.exec(line)?.[1] ?? '')
      .filter((command) => command !== ''),
  );
}

function metricsIn(text: string): string[] {
  return unique(
    text
      .split('\n')
      .filter((line) => line.startsWith('# TYPE '))
      .map((line) => line.slice('# TYPE '.length)),
  );
}

function schemaOf(path: string): string[] {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const objects = database.prepare('select type, name, sql from sqlite_schema').all();
    const schema = objects.map((row) => `${row['type']} ${row['name']}: ${row['sql'] ?? ''}`);
    const version = database.prepare('pragma user_version').get()?.['user_version'];
    const migrations = objects.some((row) => row['name'] === 'kysely_migration')
      ? database.prepare('select name from kysely_migration').all()
      : [];
    return [
      `user_version ${version}`,
      ...schema.toSorted(),
      ...migrations.map((row) => `migration ${row['name']}`).toSorted(),
    ];
  } finally {
    database.close();
  }
}

/** Returns every leaf of a JSON document as `path = value`. */
function leavesOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [`${path} = ${JSON.stringify(value)}`];
  const entries = Object.entries(value);
  if (entries.length === 0) return [`${path} = ${JSON.stringify(value)}`];
  return entries.flatMap(([key, inner]) => leavesOf(inner, `${path}/${key}`)).toSorted();
}

/**
 * Removes descriptions and summaries. A schema may have a property with one of these names, so only text is removed.
 */
function withoutDescriptions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDescriptions);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([key, inner]) => !(/^(?:description|summary)$/.test(key) && typeof inner === 'string'),
      )
      .map(([key, inner]) => [key, withoutDescriptions(inner)]),
  );
}

async function output(root: string, { main, environment }: Program, option: string) {
  const { PATH = '' } = process.env;
  const child = spawn(node(root), [main, option], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH, ...environment },
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`${main} ${option} ended with ${code}`);
  return text;
}

/** Returns the body of a 200 answer; retries until the server listens. */
async function get(url: string): Promise<string> {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const answer = await fetch(url).catch(() => null);
    if (answer?.status === 200) return answer.text();
    if (waitedMs > READY_WITHIN_MS) {
      throw new Error(`${url} answered ${answer?.status ?? 'nothing'} for ${READY_WITHIN_MS} ms`);
    }
    await sleep(POLL_MS);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function node(root: string): string {
  return join(root, 'node_modules/.bin/node');
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].toSorted();
}
