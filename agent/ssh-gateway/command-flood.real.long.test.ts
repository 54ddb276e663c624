/** A renter that starts commands without end through many connections: other pods keep answering. Needs root. */
import { readFileSync } from 'node:fs';
import ssh2, { type Client } from 'ssh2';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { START_PACE } from '../access/exec/start-pace.ts';

const CONNECTIONS = 10;
const CHANNELS = 10;
const FLOOD_MS = 8_000;
const PAUSE_MS = 20;

let host: SshHost;
let attacker: PodView;
let neighbour: PodView;
beforeAll(async () => {
  host = await startSshHost();
  [attacker, neighbour] = await Promise.all([host.launch(), host.launch()]);
});
afterAll(() => host?.stop());

const succeeds = async (pod: PodView) => (await host.ssh(pod, ['true'])).code === 0;

function connect(pod: PodView): Promise<Client> {
  const client = new ssh2.Client();
  const privateKey = readFileSync(host.key.file);
  return new Promise((resolve, reject) => {
    client.once('ready', () => resolve(client));
    client.once('error', reject);
    client.connect({ host: '127.0.0.1', port: host.portOf(pod), username: 'root', privateKey });
  });
}

/** Runs a command. Resolves with true if it has succeeded, when its channel has closed. */
function run(client: Client): Promise<boolean> {
  return new Promise((resolve) => {
    client.exec('true', (error, channel) => {
      if (error !== undefined) return resolve(false);
      let isDone = false;
      channel.once('exit', (code) => {
        isDone = code === 0;
      });
      channel.once('close', () => resolve(isDone));
      channel.resume();
      channel.stderr.resume();
    });
  });
}

it('starts the commands of one pod at a limited rate, and those of other pods at once', async () => {
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => connect(attacker)));
  const startedMs = systemClock.monotonicMs();
  let [ran, isOver] = [0, false];
  const loops = clients.flatMap((client) =>
    Array.from({ length: CHANNELS }, async () => {
      while (!isOver) {
        if (await run(client)) ran += 1;
        else await systemClock.sleep(PAUSE_MS);
      }
    }),
  );
  while (systemClock.monotonicMs() - startedMs < FLOOD_MS) {
    await eventually('a command in the other pod', () => succeeds(neighbour));
  }
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  expect(ran).toBeLessThanOrEqual(START_PACE.burst + START_PACE.perSecond * (seconds + 1));
  expect(ran).toBeGreaterThan(0);
  isOver = true;
  // Fails the commands that wait for their turn.
  for (const client of clients) client.end();
  await Promise.allSettled(loops);
  // The commands of closed channels no longer wait.
  await eventually('a command in the same pod', () => succeeds(attacker));
});
