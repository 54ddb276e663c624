/** SSH sessions that ignore their end, and large files. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { runClient, type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';

const BIG_BYTES = 50 * 1024 * 1024;

let host: SshHost;
let pod: PodView;

beforeAll(async () => {
  host = await startSshHost();
  pod = await host.launch();
});
afterAll(() => host.stop());

it('a command is killed if it ignores the disconnect of its client', async () => {
  const child = host.spawnSsh(pod, ["trap '' HUP; echo up; while :; do sleep 0.321; done"]);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.kill('SIGKILL');
  await eventually('the kill', async () => {
    const { stdout } = await host.ssh(pod, ['ps']);
    return !stdout.toString().includes('sleep 0.321');
  });
});

it('files are transferred by scp in both directions, 50 MB', async () => {
  const data = randomBytes(BIG_BYTES);
  const [from, back] = [join(host.home, 'big'), join(host.home, 'big-back')];
  writeFileSync(from, data);
  const options = [...host.options(host.portOf(pod)), '-q'];
  expect((await runClient('scp', [...options, from, 'root@127.0.0.1:/tmp/big'])).code).toBe(0);
  expect((await runClient('scp', [...options, 'root@127.0.0.1:/tmp/big', back])).code).toBe(0);
  expect(readFileSync(back).equals(data)).toBe(true);
});
