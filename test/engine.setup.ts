/** Requires a Docker engine that responds before any test runs, and provides the id of the test run. */
import { request } from 'node:http';
import type { TestProject } from 'vitest/node';
import { systemRandom } from '#shared/runtime/random.ts';
import { RUN_VARIABLE } from './run/leftovers.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Id of this run. Tests add the label `io.podwright.test-run=<id>` to everything that they create in Docker. */
    testRun: string;
  }
}

type Answer = { status: number; body: string };

const DEFAULT_HOST = 'unix:///var/run/docker.sock';
const ANSWER_TIMEOUT_MS = 4_000;

export async function setup(project: TestProject): Promise<void> {
  await checkEngine();
  project.provide('testRun', process.env[RUN_VARIABLE] ?? systemRandom.uuid());
}

async function checkEngine(): Promise<void> {
  const problem = await ask('GET', '/_ping').then(
    ({ status }) => (status === 200 ? null : `answered ${status}`),
    (error: Error) => error.message,
  );
  if (problem === null) return;
  throw new Error(
    `The tests need a Docker engine, and ${engineHost()} did not answer (${problem}): ` +
      'run "sudo sh systemd/prerequisites.sh", or set DOCKER_HOST.',
  );
}

/** Sends one request to the engine without dockerode, which only agent/containers/engine imports. */
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
