/**
 * Copying a large file into a pod: scp through the SSH gateway, compared with the same bytes piped into `docker exec`.
 */
import { execFile, spawn } from 'node:child_process';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { PodSpecInput, PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { COMPILE_CACHE, gatewayArguments } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { launchPod, removePods } from '../fakes/agents/launch-pod.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';

const run = promisify(execFile);

const BYTES = 200 * 1024 * 1024;
const PAIRS = 3;
/** Maximum ratio to the reference: above 1, because `docker exec` neither encrypts nor verifies the copy. */
const MAX_RATIO = 2.5;

/** Measures copies that alternate with the reference, so that load on the host affects both alike. */
export async function sshCopy(agent: AgentProcess): Promise<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-ssh-'));
  const gateway = spawn(process.execPath, gatewayArguments(), {
    env: {
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      SSH_SNAPSHOT: join(agent.home, 'ssh', 'gateway.json'),
      SSH_HOST: '127.0.0.1',
      SSH_LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  try {
    const key = createSshKeyPair(systemRandom, 'bench');
    writeFileSync(join(folder, 'key'), key.privateKeyPem, { mode: 0o600 });
    writeFileSync(join(folder, 'data'), systemRandom.bytes(BYTES));
    const pod = await launchPod(agent, specWith(key.publicKey), { isReady: acceptsLogins });
    const ours: number[] = [];
    const reference: number[] = [];
    for (let pair = 0; pair < PAIRS; pair += 1) {
      ours.push(await took(() => copyByScp(pod, folder)));
      reference.push(await took(() => copyByExec(pod, folder)));
    }
    await removePods(agent, [pod.id]);
    const measured = { ours: median(ours), reference: median(reference) };
    return ratioAtMost('200 MB into a pod', 'ms', 'cat | docker exec -i cat', measured, MAX_RATIO);
  } finally {
    gateway.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

const acceptsLogins = ({ ssh }: PodView): boolean => ssh?.ready === true;

function specWith(publicKey: string): PodSpecInput {
  return {
    generation: 1,
    image: { reference: 'podwright.local/base:1' },
    internal_ports: [22],
    limits: { cpu_cores: 2, memory_bytes: 1024 ** 3, shm_bytes: 0, pids: 512 },
    stop_grace_seconds: 0,
    ssh_public_keys: [publicKey],
  };
}

async function took(work: () => Promise<unknown>): Promise<number> {
  const beganMs = systemClock.monotonicMs();
  await work();
  return systemClock.monotonicMs() - beganMs;
}

function copyByScp(pod: PodView, folder: string): Promise<unknown> {
  const settings = [
    `IdentityFile=${join(folder, 'key')}`,
    'IdentitiesOnly=yes',
    'BatchMode=yes',
    'StrictHostKeyChecking=accept-new',
    `UserKnownHostsFile=${join(folder, 'known_hosts')}`,
    `Port=${pod.ssh?.port}`,
  ];
  const options = settings.flatMap((setting) => ['-o', setting]);
  const paths = [join(folder, 'data'), 'root@127.0.0.1:/tmp/data'];
  return run('scp', ['-q', '-F', '/dev/null', ...options, ...paths]);
}

function copyByExec(pod: PodView, folder: string): Promise<void> {
  const args = ['exec', '-i', pod.container_id ?? '', 'sh', '-c', 'cat >/tmp/data'];
  return new Promise((resolve, reject) => {
    const child = spawn('docker', args, { stdio: ['pipe', 'inherit', 'inherit'] });
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`docker: ${code}`))));
    createReadStream(join(folder, 'data')).pipe(child.stdin);
  });
}
