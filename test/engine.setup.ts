/**
 * Before the tests: a Docker engine must answer, or the run fails with one sentence. After them:
 * whatever they left in it is removed, and named as a failure, for such a test does not clean up.
 */
import { request } from 'node:http';
import type { TestProject } from 'vitest/node';
import { systemRandom } from '#shared/runtime/random.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** This run's id; tests label what they create in Docker `io.podwright.test-run=<id>`. */
    testRun: string;
  }
}

type Answer = { status: number; body: string };
type LeftOver = { kind: string; name: string; path: string };

const DEFAULT_HOST = 'unix:///var/run/docker.sock';
const ANSWER_TIMEOUT_MS = 4_000;

/** Checks the engine and gives this run its id; the function returned is the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await checkEngine();
  const runId = systemRandom.uuid();
  project.provide('testRun', runId);
  return () => removeLeftOvers(`io.podwright.test-run=${runId}`);
}

async function checkEngine(): Promise<void> {
  const problem = await ask('GET', '/_ping').then(
    ({ status }) => (status === 200 ? null : `answered ${status}`),
    (error: Error) => error.message,
  );
  if (problem === null) return;
  throw new Error(
    `The tests need a Docker engine, and ${engineHost()} gave none (${problem}): ` +
      'run "sudo sh systemd/prerequisites.sh", or set DOCKER_HOST.',
  );
}

async function removeLeftOvers(label: string): Promise<void> {
  const found = await listLeftOvers(label);
  if (found.length === 0) return;
  // Set now: vitest ends a teardown that takes too long, with the exit status of the moment.
  process.exitCode = 1;
  // A network or volume can go only when no container uses it.
  for (const kind of ['container', 'network', 'volume']) {
    const ofKind = found.filter((object) => object.kind === kind);
    await Promise.all(ofKind.map(({ path }) => ask('DELETE', path)));
  }
  const names = found.map(({ kind, name }) => `${kind} ${name}`).join(', ');
  throw new Error(`Tests left these in Docker, where they are removed now: ${names}`);
}

async function listLeftOvers(label: string): Promise<LeftOver[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
  const [containers, networks, volumes] = await Promise.all([
    list<{ Id: string; Names: string[] }[]>(`/containers/json?all=true&filters=${filters}`),
    list<{ Id: string; Name: string }[]>(`/networks?filters=${filters}`),
    list<{ Volumes: { Name: string }[] | null }>(`/volumes?filters=${filters}`),
  ]);
  return [
    ...containers.map(({ Id, Names }) => ({
      kind: 'container',
      name: Names[0]?.slice(1) ?? Id,
      path: `/containers/${Id}?force=true&v=true`,
    })),
    ...networks.map(({ Id, Name }) => ({ kind: 'network', name: Name, path: `/networks/${Id}` })),
    ...(volumes.Volumes ?? []).map(({ Name }) => ({
      kind: 'volume',
      name: Name,
      path: `/volumes/${encodeURIComponent(Name)}?force=true`,
    })),
  ];
}

async function list<T>(path: string): Promise<T> {
  const { status, body } = await ask('GET', path);
  if (status !== 200) throw new Error(`Docker answered ${status} to GET ${path}: ${body}`);
  return JSON.parse(body);
}

/** One request to the engine, without dockerode, which has its one home in agent/docker. */
function ask(method: string, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { ...engineAddress(), method, path, timeout: ANSWER_TIMEOUT_MS };
    const call = request(options, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.on('error', reject);
    });
    call.on('timeout', () => call.destroy(new Error(`no answer in ${ANSWER_TIMEOUT_MS} ms`)));
    call.on('error', reject);
    call.end();
  });
}

function engineHost(): string {
  return process.env['DOCKER_HOST'] || DEFAULT_HOST;
}

function engineAddress(): { socketPath: string } | { host: string; port: string } {
  const host = engineHost();
  if (host.startsWith('unix://')) return { socketPath: host.slice('unix://'.length) };
  const { hostname, port } = new URL(host.replace(/^tcp:/, 'http:'));
  return { host: hostname, port };
}
