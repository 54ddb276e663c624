/** A marketplace that runs as a process for the tests of one file, and the renter's requests that these tests send. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { readSse } from '#shared/http/event-stream.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import type { DemoFile } from '../../validator/embedded/demo-file.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
export const home = temporaryHome();
let flags: string[] = [];
let market: MarketplaceProcess;
let executorIds: readonly string[] = [];

/** Starts the marketplace before the tests of the file, and removes everything of it afterwards. */
export function runMarketplace(): void {
  beforeAll(async () => {
    flags = await freePortFlags();
    market = await startMarketplaceProcess(home, flags);
    executorIds = demo().executors.map((executor) => executor.id);
  });

  afterAll(async () => {
    await market?.end();
    for (const executor of executorIds) {
      const labels = { [LABELS.executor]: executor };
      for (const container of await engine.listContainers(labels)) {
        await engine.removeContainer(container.id);
      }
      for (const network of await engine.listNetworks(labels)) {
        await engine.removeNetwork(network.id);
      }
      for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
    }
    removeHome(home);
  });
}

/** The running process; after `restart`, the new one. */
export const marketplace = (): MarketplaceProcess => market;
export const demo = (): DemoFile => market.demo();

/** Starts the marketplace again on the same home and ports. The previous process must have ended. */
export async function restart(): Promise<void> {
  market = await startMarketplaceProcess(home, flags);
}

export async function listedExecutors() {
  return (await api(demo(), 'GET', '/executors')).body as { id: string }[];
}

export async function freeNode(): Promise<string> {
  const [first] = await listedExecutors();
  if (first === undefined) throw new Error('no executor is free');
  return first.id;
}

export async function rent(
  node: string,
  headers: Record<string, string> = {},
  change: Record<string, unknown> = {},
) {
  const body = { pod_name: 'e2e', template_id: demo().templates[0]?.id, ...change };
  return api(demo(), 'POST', `/executors/${node}/rent`, body, headers);
}

export type PodRow = {
  id: string;
  status: string;
  ssh_connect_cmd: string | null;
  ports_mapping: Record<string, number>;
};

export async function untilRunning(id: string): Promise<PodRow> {
  return eventually(
    `pod ${id} running`,
    async () => {
      const { body } = await api(demo(), 'GET', `/pods/${id}`);
      const pod = body as PodRow;
      return pod.status === 'RUNNING' && pod.ssh_connect_cmd !== null ? pod : false;
    },
    20_000,
  );
}

export async function remove(id: string): Promise<void> {
  await api(demo(), 'DELETE', `/pods/${id}`);
  await eventually(
    `containers of ${id} gone`,
    async () => (await containersOf(id)).length === 0,
    20_000,
  );
}

export const containersOf = (podId: string) => engine.listContainers({ [LABELS.pod]: podId });
export const networksOf = (podId: string) => engine.listNetworks({ [LABELS.pod]: podId });
export const volumesOf = (podId: string) => engine.listVolumes({ [LABELS.pod]: podId });

/** Yields log lines of the pod as they arrive, until `count` were read. */
export async function followLines(id: string, count: number): Promise<string[]> {
  const { base_url: base, account } = demo();
  const reading = new AbortController();
  const response = await fetch(`${base}/pods/${id}/logs?follow=true&tail=0`, {
    headers: { 'X-API-Key': account.api_key },
    signal: systemClock.deadline(20_000, reading.signal),
  });
  expect(response.headers.get('content-type')).toMatch('text/event-stream');
  const lines: string[] = [];
  if (response.body === null) throw new Error('no stream');
  for await (const frame of readSse(response.body)) {
    const { log } = frame as { log?: string };
    if (log !== undefined) lines.push(log);
    if (lines.length >= count) break;
  }
  reading.abort();
  return lines;
}

/** Routes that the logs of central API, gateway and agents record for a request id, without duplicates. */
export function routesAnsweredFor(requestId: string): string[] {
  const folder = join(home, 'logs');
  const lines = readdirSync(folder)
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'))
    .filter((line) => line.includes(`"request_id":"${requestId}"`))
    .map((line) => JSON.parse(line));
  const answered = lines.filter(({ msg }) => msg === 'answered');
  return [...new Set(answered.map(({ method, route }) => `${method} ${route}`))].toSorted();
}

/** Logs in with `ssh_connect_cmd` as clients do. */
export function logIn(connectCommand: string, command: string): string {
  const [program = '', ...args] = connectCommand.split(' ');
  const settings = [
    `IdentityFile=${demo().ssh.private_key_file}`,
    'IdentitiesOnly=yes',
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
  ];
  const options = ['-F', '/dev/null', ...settings.flatMap((setting) => ['-o', setting])];
  return execFileSync(program, [...options, ...args, command], { encoding: 'utf8' });
}
