/**
 * Backs up a gigabyte of varied files from a pod, changes them, restores the backup on the same agent and on another
 * agent, and compares the file trees.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OperationView, RepositoryAccess } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';
import { eventually } from '../fakes/eventually.ts';
import { startBackupServer } from '../fakes/external/backup-server.ts';
import {
  allocatedBytes,
  changeMixedTree,
  fingerprintOf,
  ONE_GIB,
  writeMixedTree,
} from '../fakes/mixed-tree.ts';
import { PASSWORD } from '../fakes/scenes/backup-scene.ts';
import { createMeasuredHome } from '../measure/measured-agent.ts';
import { figureAtMost, type Row } from '../measure/row.ts';

const PORTS = ['28200-28299', '28300-28399'] as const;
const ENDED_WITHIN_MS = 20 * 60_000;
const PATH = '/data/tree';
const MIB = 1024 * 1024;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });

type Host = { agent: AgentProcess; podId: string; tree: string; close(): Promise<void> };

/** Runs the backups and restores. Needs root and about 4 GB of disk. */
export async function backupTree(print: (line: string) => void): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-soak-'));
  const server = await startBackupServer({ folder, bytesPerAccount: 1024 ** 4 });
  const hosts: Host[] = [];
  try {
    for (const ports of PORTS) hosts.push(await startHost(ports));
    const ids = { id: systemRandom.uuid(), accountId: systemRandom.uuid() };
    const repository = { ...(await server.storage.place(ids, 'append')), password: PASSWORD };
    return await thereAndBack(hosts, repository, print);
  } finally {
    for (const host of hosts) await host.close();
    await server.close();
    rmSync(folder, { recursive: true });
  }
}

async function thereAndBack(
  [here, there]: Host[],
  repository: RepositoryAccess,
  print: (line: string) => void,
): Promise<Row[]> {
  if (here === undefined || there === undefined) throw new Error('two hosts are needed');
  writeMixedTree(here.tree, ONE_GIB);
  const sparseBefore = allocatedBytes(join(here.tree, 'sparse'));
  const first = fingerprintOf(here.tree);
  print(`a tree of ${first.length} entries`);
  const one = await backUp(here, repository);
  changeMixedTree(here.tree, ONE_GIB);
  const second = fingerprintOf(here.tree);
  const two = await backUp(here, repository);
  print(`second backup: ${two.log.at(-1)}`);
  await restore(there, repository, two);
  const onOther = fingerprintOf(there.tree);
  await restore(here, repository, one);
  const back = fingerprintOf(here.tree);
  const sparse = allocatedBytes(join(here.tree, 'sparse')) - sparseBefore;
  return [
    figureAtMost(
      'entries that differ, restored on the same node',
      differing(first, back),
      'entries',
      0,
    ),
    figureAtMost(
      'entries that differ, on the second node',
      differing(second, onOther),
      'entries',
      0,
    ),
    figureAtMost('additional disk space of a restored sparse file', sparse / MIB, 'MiB', 1),
  ];
}

function differing(wanted: readonly string[], found: readonly string[]): number {
  const [one, other] = [new Set(wanted), new Set(found)];
  return (
    wanted.filter((line) => !other.has(line)).length + found.filter((line) => !one.has(line)).length
  );
}

async function startHost(ports: string): Promise<Host> {
  const home = createMeasuredHome({ AGENT_PORT_RANGE: ports });
  const agent = await home.start();
  const podId = systemRandom.uuid();
  await agent.client.putPod(podId, podSpec({ volumes: ['/data'] }));
  await eventually('a pod', async () => (await agent.client.getPod(podId)).phase === 'running');
  const [volume] = await engine.listVolumes({ [LABELS.pod]: podId });
  return {
    agent,
    podId,
    tree: join(volume?.hostPath ?? '', 'tree'),
    async close() {
      await agent.client.deletePod(podId);
      await eventually(
        'its end',
        async () => (await agent.client.getPod(podId)).phase === 'removed',
      );
      await agent.stop();
      home.remove();
    },
  };
}

async function backUp(
  { agent, podId }: Host,
  repository: RepositoryAccess,
): Promise<OperationView> {
  const operation_id = systemRandom.uuid();
  const request = { operation_id, path: PATH, repository, create_repository: true };
  await agent.client.postBackup(podId, request);
  return ended(agent, operation_id);
}

async function restore(
  { agent, podId }: Host,
  repository: RepositoryAccess,
  { snapshot_id }: OperationView,
): Promise<void> {
  const operation_id = systemRandom.uuid();
  const paths = { source_path: PATH, target_path: PATH };
  const request = { operation_id, snapshot_id: snapshot_id ?? '', ...paths, repository };
  await agent.client.postRestore(podId, { ...request, mode: 'replace' });
  await ended(agent, operation_id);
}

async function ended({ client }: AgentProcess, id: string): Promise<OperationView> {
  const read = async () => {
    const view = await client.getOperation(id);
    return view.finished_ms === null ? null : view;
  };
  const view = await eventually('the end of an operation', read, ENDED_WITHIN_MS);
  if (view.stage === 'done') return view;
  throw new Error(`${view.kind} ${view.stage}: ${JSON.stringify(view.error)}`);
}
