/**
 * Backups to a real process of the central API, through a proxy (the storage gate). Tests kill the agent, restic or the
 * central API at a chosen moment.
 */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { BackupRequest, RestoreRequest } from '#shared/api/agent/operations.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createRepositoryCredentials } from '../../../validator/central/backups/storage/repository-credentials.ts';
import { makeRepository } from '../../../validator/central/backups/storage/repository-folder.ts';
import { eventually } from '../eventually.ts';
import { quickRepository } from '../external/quick-repository.ts';
import type { Order } from '../faults/operation-worker.ts';
import { type StorageGate, startStorageGate } from '../faults/storage-gate.ts';
import { freePorts } from '../free-ports.ts';
import { type BackupScene, createBackupScene, PASSWORD } from './backup-scene.ts';
import { type CentralProcess, startCentralProcess } from './central-process.ts';

const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const SECRET = Buffer.alloc(32, 7);
const WORKER = new URL('../faults/operation-worker.ts', import.meta.url).pathname;

export type FaultPod = BackupScene & {
  /** Runs restic and records its process id. */
  program: string;
  /** Returns true while restic runs. */
  hasRestic(): boolean;
  /** Sends SIGKILL to the running restic. */
  killRestic(): void;
};

export type FaultScene = Awaited<ReturnType<typeof startFaultScene>>;

export async function startFaultScene() {
  const home = mkdtempSync(join(tmpdir(), 'podwright-faults-'));
  writeFileSync(join(home, 'central.secret'), SECRET, { mode: 0o600 });
  const { first: port } = await freePorts(1);
  const startCentral = () =>
    startCentralProcess({
      CENTRAL_HOME: home,
      CENTRAL_PORT: String(port),
      CENTRAL_GATEWAY_URL: 'http://127.0.0.1:1',
      CENTRAL_GATEWAY_HOTKEY: HOTKEY,
    });
  let central: CentralProcess = await startCentral();
  const gate: StorageGate = await startStorageGate(() => port);

  /** Creates a pod whose repository the central API stores. */
  async function newPod(folder?: string): Promise<FaultPod> {
    const grant = { repositoryId: systemRandom.uuid(), accountId: systemRandom.uuid() };
    const location = join(home, 'backups', grant.repositoryId);
    await makeRepository(location, grant.accountId);
    for (const { path, content } of quickRepository(PASSWORD)) {
      mkdirSync(dirname(join(location, path)), { recursive: true });
      writeFileSync(join(location, path), content);
    }
    const credentials = createRepositoryCredentials({ secret: SECRET });
    const { username, password } = credentials.of({ ...grant, rights: 'append' });
    const repository = {
      location: `${gate.origin}${grant.repositoryId}/`,
      password: PASSWORD,
      environment: { RESTIC_REST_USERNAME: username, RESTIC_REST_PASSWORD: password },
    };
    const at = folder === undefined ? {} : { folder };
    const scene = createBackupScene({ made: false, location, repository, ...at });
    const program = join(scene.folder, 'known-restic');
    writeFileSync(program, `#!/bin/sh\necho $$ >'${program}.pid'\nexec restic "$@"\n`);
    chmodSync(program, 0o755);
    const resticPid = () => Number(readFileSync(`${program}.pid`, 'utf8'));
    const hasRestic = () => existsSync(`${program}.pid`) && isAlive(resticPid());
    const killRestic = () => process.kill(resticPid(), 'SIGKILL');
    return { ...scene, program, hasRestic, killRestic };
  }

  /** Starts the operation in a separate agent process. `kill` resolves once that process and its restic have ended. */
  function startWorker(pod: FaultPod, order: Pick<Order, 'asked' | 'haltAt'>) {
    const { folder, podId, location, program } = pod;
    const haltedFile = join(folder, 'halted');
    rmSync(haltedFile, { force: true });
    const argument = JSON.stringify({
      scene: { folder, podId, location },
      haltedFile,
      program,
      ...order,
    });
    const child = spawn(process.execPath, [WORKER, argument], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    return {
      halted: () =>
        eventually('the stage of the kill', () => {
          if (child.exitCode !== null) throw new Error(`the worker ended with ${child.exitCode}`);
          return existsSync(haltedFile);
        }),
      async kill(): Promise<void> {
        child.kill('SIGKILL');
        await exited;
        await eventually('the end of its restic', () => !pod.hasRestic());
      },
    };
  }

  return {
    gate,
    newPod,
    startWorker,
    killCentral: () => central.end('SIGKILL'),
    async startCentral(): Promise<void> {
      central = await startCentral();
    },
    async close(): Promise<void> {
      await gate.close();
      await central.end('SIGKILL');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Also returns true for a zombie that its parent has not reaped; restic treats a zombie as alive, too. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export type Asked =
  | { kind: 'backup'; request: BackupRequest }
  | { kind: 'restore'; request: RestoreRequest };
