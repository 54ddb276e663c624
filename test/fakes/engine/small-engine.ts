/** A second Docker engine with a small disk, which tests fill. It runs no containers. Needs root. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom } from '#shared/runtime/random.ts';
import { mustRun } from '../agents/real-host.ts';
import { eventually } from '../eventually.ts';

const WITHIN_MS = 30_000;

export type SmallEngine = { socketPath: string; remove(): Promise<void> };

/** Address from the benchmarking range (RFC 2544), used by no network. */
const BRIDGE_ADDRESS = '198.18.254.1/29';

/**
 * Starts the engine in the host's network, so that it can reach test registries, and without firewall rules. The engine
 * has a separate bridge, because an engine configured without a bridge removes the bridge of the host's engine.
 */
export async function startSmallEngine(diskMib: number): Promise<SmallEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-small-'));
  const socketPath = join(folder, 'docker.sock');
  const data = join(folder, 'data');
  mkdirSync(data);
  const bridge = `small-${systemRandom.uuid().slice(0, 8)}`;
  await mustRun('ip', 'link', 'add', bridge, 'type', 'bridge');
  await mustRun('ip', 'address', 'add', BRIDGE_ADDRESS, 'dev', bridge);
  await mustRun('mount', '-t', 'tmpfs', '-o', `size=${diskMib}m`, 'podwright-small', data);
  const daemon = spawn(
    'sh',
    [
      '-c',
      `exec dockerd "$@" >>${join(folder, 'log')} 2>&1`,
      'sh',
      ...daemonArguments(folder, data, bridge),
    ],
    {
      stdio: 'ignore',
      env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin:/sbin` },
    },
  );
  const isGone = () => daemon.exitCode !== null || daemon.signalCode !== null;

  async function remove(): Promise<void> {
    daemon.kill('SIGTERM');
    await eventually('the end of the small engine', isGone, WITHIN_MS);
    await mustRun('umount', data);
    await mustRun('ip', 'link', 'delete', bridge);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }

  const answers = async () => {
    if (isGone()) throw new Error(readFileSync(join(folder, 'log'), 'utf8'));
    return mustRun('docker', '-H', `unix://${socketPath}`, 'version').then(
      () => true,
      () => false,
    );
  };
  try {
    await eventually('the small engine', answers, WITHIN_MS);
  } catch (error) {
    await remove();
    throw error;
  }
  return { socketPath, remove };
}

function daemonArguments(folder: string, data: string, bridge: string): string[] {
  return [
    `--data-root=${data}`,
    `--exec-root=${join(folder, 'exec')}`,
    `--pidfile=${join(folder, 'pid')}`,
    `--host=unix://${join(folder, 'docker.sock')}`,
    ...[`--bridge=${bridge}`, '--iptables=false', '--ip-forward=false', '--ip-masq=false'],
    // A failed pull would be retried for half a minute.
    '--max-download-attempts=1',
  ];
}
