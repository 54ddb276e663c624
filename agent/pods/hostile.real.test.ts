/** Hostile pods: each stays within its limits, and its host and neighbour keep answering. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import {
  ATTACKER_LIMITS,
  type AttackedHost,
  createAttackedHost,
} from '../../test/fakes/agents/hostile-pods.ts';
import { command, mustRun } from '../../test/fakes/agents/real-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';

let host: AttackedHost;
beforeAll(async () => {
  host = await createAttackedHost();
});
afterAll(() => host?.close());

/** Counts processes through the engine, because the pod may not be able to start another process. */
async function processesOf(pod: PodView): Promise<number> {
  const lines = await mustRun('docker', 'top', pod.container_id ?? '', '-o', 'pid');
  return lines.trim().split('\n').length - 1;
}

it('limits a fork bomb to the pod’s processes', async () => {
  // Unlike a shell, awk continues if it cannot fork.
  const bomb = `exec awk 'BEGIN { while (1) system("sleep 30 & sleep 30 &") }'`;
  await host.attack(bomb, async (pod) => {
    const count = await processesOf(pod);
    expect(count).toBeLessThanOrEqual(ATTACKER_LIMITS.pids);
    expect(count).toBeGreaterThan(ATTACKER_LIMITS.pids / 2);
    expect((await host.view(pod.id)).phase).toBe('running');
  });
});

it('kills a pod that exceeds its memory and reports OOMKilled', async () => {
  await host.attack('tail /dev/zero; exit 9', async (pod) => {
    // The engine may report the kill of the child after the exit of its parent.
    await eventually('the report of the kill', async () => {
      const { last_exit } = await host.view(pod.id);
      return last_exit?.oom_killed === true && last_exit.reason === 'OOMKilled';
    });
  });
});

it('a pod that scans its bridge network finds only itself, not even the host', async () => {
  const own = "ip -4 -o addr show eth0 | awk '{print $4}' | cut -d/ -f1";
  const look = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 1 $net.$last 8000 | grep -q HTTP";
  const scan = [
    `httpd -p 8000 -h /www; own=$(${own}); net=$(echo $own | cut -d. -f1-3)`,
    'first=$(($(echo $own | cut -d. -f4) / 16 * 16))',
    `for last in $(seq $first $((first + 15))); do (${look} && echo $net.$last >>/tmp/found) &`,
    '[ $((last % 8)) = 7 ] && wait; done 2>/dev/null; echo $own >/tmp/own; sleep 60',
  ].join('\n');
  await host.attack(scan, async (pod) => {
    const read = ['exec', pod.container_id ?? '', 'cat', '/tmp/own', '/tmp/found'];
    const [self, ...found] = await eventually('the end of the scan', async () => {
      const { exitCode, stdout } = await command('docker', ...read);
      return exitCode === 0 && stdout.trim().split('\n');
    });
    expect(found).toEqual([self]);
  });
});
