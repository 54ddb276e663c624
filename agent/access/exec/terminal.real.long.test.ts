/** Terminals that ignore their end, clients that do not read, a full pod and a killed agent. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { startLogPod } from '../../../test/bench/log-pod.ts';
import { removePods } from '../../../test/fakes/agents/launch-pod.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { startTerminalHost, type TerminalHost } from '../../../test/fakes/agents/terminal-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { MAX_TERMINALS_PER_POD } from './terminal.service.ts';

let host: TerminalHost;
beforeAll(async () => {
  host = await startTerminalHost();
});
afterAll(() => host.close());

it('a terminal sends all output of a program, however much', async () => {
  const terminal = await host.open();
  terminal.type('stty -onlcr; head -c 20000000 /dev/zero | tr "\\\\0" x; exit\n');
  await terminal.closed;
  expect(terminal.bytes()).toBeGreaterThan(20_000_000);
  expect(terminal.bytes()).toBeLessThan(20_001_000);
});

it('a terminal is killed if it ignores the disconnect of its client', async () => {
  const terminal = await host.open();
  terminal.type("trap '' HUP; while :; do sleep 0.765; done\n");
  await eventually('the program', async () => (await host.processes()).includes('sleep 0.765'));
  terminal.socket.close();
  await eventually('the kill', async () => !(await host.processes()).includes('sleep 0.765'));
});

it('a misbehaving client does not delay other clients and costs little memory when it stops reading', async () => {
  const stalled = await host.open();
  stalled.type('yes\n');
  await stalled.shows('y\r\ny\r\n');
  stalled.socket.pause();
  const before = await residentMiB();
  const other = await host.open();
  other.type('echo $((6 * 7))\n');
  await other.shows('42');
  await systemClock.sleep(2_000);
  expect((await residentMiB()) - before).toBeLessThan(16);
  await host.leave(stalled, other);
});

it('a request for a terminal is rejected above the limit of terminals per pod', async () => {
  const full = await startLogPod(host.agent(), 'exec sleep 1000');
  const opening = Array.from({ length: MAX_TERMINALS_PER_POD }, () => host.open('', full.id));
  const [first] = await Promise.all(opening);
  const oneMore = host.open('', full.id);
  await expect(oneMore).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
  first?.type('exit\n');
  await eventually('a free slot', () => host.open('', full.id).catch(() => null));
  await removePods(host.agent(), [full.id]);
});

it('the restarted agent ends the terminals that the killed agent left, but not their detached processes', async () => {
  const terminal = await host.open();
  terminal.type('setsid sleep 7655 & sleep 7656\n');
  await eventually('the programs', async () => {
    const seen = await host.processes();
    return seen.includes('sleep 7655') && seen.includes('sleep 7656');
  });
  await host.agent().kill();
  expect(await host.processes()).toContain('sleep 7656');
  await host.restart();
  await eventually('the end', async () => !(await host.processes()).includes('sleep 7656'));
  expect(await host.processes()).toContain('sleep 7655');
});

async function residentMiB(): Promise<number> {
  const status = await mustRun('cat', `/proc/${host.agent().child.pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}
