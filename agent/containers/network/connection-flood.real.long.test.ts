/** Floods of connections from a pod: host and neighbour keep answering, and the kernel's table keeps room. Needs root. */
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { type AttackedHost, createAttackedHost } from '../../../test/fakes/agents/hostile-pods.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { createNeighbour, type Neighbour } from '../../../test/fakes/neighbour-network.ts';
import { CONNECTION_LIMITS } from './firewall-rules.ts';

const FLOOD = 10_000;
const BOUNDS = { timeoutMs: 60_000, maxOutputBytes: 1_000_000 };

let neighbour: Neighbour;
let host: AttackedHost;
let pod: PodView;
beforeAll(async () => {
  neighbour = await createNeighbour([8000]);
  host = await createAttackedHost();
  pod = await host.launch('sleep 600', { internal_ports: [8000] });
});
afterAll(async () => {
  await host?.close();
  await neighbour?.close();
});

/** Runs a script of Node in the network of the pod, and returns its output. */
async function inNetworkOf(view: PodView, script: string): Promise<string> {
  const inspect = ['inspect', '-f', '{{.State.Pid}}', view.container_id ?? ''];
  const pid = (await mustRun('docker', ...inspect)).trim();
  const args = ['--target', pid, '--net', '--', process.execPath, '--input-type=module', '-e'];
  const { stdout, stderr } = await runCommand('nsenter', [...args, script], BOUNDS);
  return stdout || stderr;
}

/** Connections in the table of the host that the pod has opened. */
async function connections(): Promise<number> {
  const source = ` src=${await host.addressOf(pod)} `;
  const table = await readFile('/proc/net/nf_conntrack', 'utf8');
  return table.split('\n').filter((line) => line.includes(source)).length;
}

function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
  return all.filter(({ family, internal }) => family === 'IPv4' && !internal).map((a) => a.address);
}

it('a pod that opens many connections to the internet leaves room in the table of the host', async () => {
  const script = `
    import dgram from 'node:dgram';
    const socket = dgram.createSocket('udp4');
    for (let n = 0; n < ${FLOOD}; n += 1) {
      await new Promise((resolve) => socket.send('x', 1_024 + n, '${neighbour.addresses.public}', resolve));
    }
    socket.close();
    console.log('sent');`;
  const startedMs = systemClock.monotonicMs();
  const sent = inNetworkOf(pod, script);
  expect(await host.unanswered()).toEqual([]);
  expect(await sent).toBe('sent\n');
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  const added = await connections();
  const { open, burst, perSecond } = CONNECTION_LIMITS;
  expect(added).toBeLessThan(Math.min(open, burst + perSecond * seconds));
  expect(added).toBeGreaterThan(burst / 2);
});

it('a pod that opens many connections to the host reaches no port and does not slow it down', async () => {
  const ports = [host.agentPort, ...Object.values(pod.ports), 22];
  const targets = ownAddresses().flatMap((address) => ports.map((port) => ({ address, port })));
  const script = `
    import net from 'node:net';
    const targets = ${JSON.stringify(targets)};
    let [connected, failed] = [0, 0];
    for (let n = 0; n < ${FLOOD}; n += 1) {
      const { address, port } = targets[n % targets.length];
      const socket = net.connect({ host: address, port });
      socket.on('connect', () => { connected += 1; });
      socket.on('error', () => { failed += 1; });
    }
    setTimeout(() => { console.log(connected, failed); process.exit(); }, 4000);`;
  const before = await connections();
  const tried = inNetworkOf(pod, script);
  expect(await host.unanswered()).toEqual([]);
  expect(await connections()).toBeLessThanOrEqual(before);
  expect(await tried).toMatch(/^0 /);
  expect(await host.inPod(pod, 'echo up')).toBe('up\n');
});
