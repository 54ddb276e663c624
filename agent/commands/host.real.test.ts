/** `npm run host` as a real process, with the real agent and gateway. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createHostHome,
  endOf,
  HOST_WITHIN_MS,
  type HostHome,
  isRunning,
} from '../../test/fakes/agents/host-process.ts';

let home: HostHome;
beforeEach(() => {
  home = createHostHome();
});
afterEach(() => home.close());

it(
  'runs agent and gateway, restarts the one that ends, and ends both on Ctrl-C',
  async () => {
    const host = await home.start();
    const [agent, ssh] = [await host.pidOf('agent'), await host.pidOf('ssh')];
    process.kill(agent, 'SIGKILL');
    const next = await host.pidOf('agent', 2);
    expect(next).not.toBe(agent);
    process.kill(ssh, 'SIGKILL');
    const nextSsh = await host.pidOf('ssh', 2);
    expect(isRunning(next)).toBe(true);
    const answer = await fetch(`http://127.0.0.1:${host.port}/healthz`);
    expect(answer.status).toBe(200);
    // npm forwards the signal that the terminal has already sent.
    host.child.kill('SIGINT');
    host.child.kill('SIGINT');
    expect(await endOf(host.child)).toBe(0);
    expect([next, nextSsh].filter(isRunning)).toEqual([]);
    const names = new Set(host.lines().map((line) => line.slice(0, 8)));
    expect([...names].toSorted()).toEqual(['agent | ', 'host  | ', 'ssh   | ']);
  },
  HOST_WITHIN_MS,
);
