/** Hostile pods: each stays within its limits, and its host and neighbour keep answering. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  ATTACK_MS,
  ATTACKER_LIMITS,
  type AttackedHost,
  createAttackedHost,
} from '../../test/fakes/agents/hostile-pods.ts';
import { mustRun } from '../../test/fakes/agents/real-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';

const MIB = 2 ** 20;
/** The log driver's `max-file` and `max-size`, with room for one more line. */
const MAX_LOG_FILES = 3;
const MAX_LOG_BYTES = 51e6;

let host: AttackedHost;
beforeAll(async () => {
  host = await createAttackedHost();
});
afterAll(() => host?.close());

it('limits shared memory to the requested size', async () => {
  const fill = 'dd if=/dev/zero of=/dev/shm/x bs=64k 2>/tmp/words; sleep 60';
  await host.attack(fill, async (pod) => {
    const [size = '', words = ''] = (
      await host.inPod(pod, 'stat -c %s /dev/shm/x; cat /tmp/words')
    ).split('\n');
    expect(Number(size)).toBeLessThanOrEqual(ATTACKER_LIMITS.shm_bytes);
    expect(Number(size)).toBeGreaterThan(ATTACKER_LIMITS.shm_bytes / 2);
    expect(words).toMatch(/No space left/);
  });
});

it('stops a pod that fills the disk', async () => {
  const limits = { ...ATTACKER_LIMITS, disk_bytes: 32 * MIB };
  const fill = 'dd if=/dev/zero of=/big bs=1M count=64; sleep 60';
  const pod = await host.launch(fill, { limits, internal_ports: [], stop_grace_seconds: 1 });
  const { diskQuota, diskWatch } = host.agent.core;
  const ended = await eventually('the end of the pod', async () => {
    await diskWatch.runOnce();
    // If the kernel enforces the limit, the write fails and the pod keeps running.
    if (diskQuota.found() === 'kernel') return (await host.inPod(pod, 'stat -c %s /big')).trim();
    const view = await host.view(pod.id);
    return view.phase === 'failed' && view.reason;
  });
  if (diskQuota.found() === 'kernel') expect(Number(ended)).toBeLessThanOrEqual(limits.disk_bytes);
  else expect(ended).toBe('DiskQuotaExceeded');
  await host.remove(pod.id);
});

it('limits the log files of a pod that floods its output', async () => {
  await host.attack('yes "$(seq 1 50 | tr -d "\\n")"', async (pod) => {
    const inspect = ['inspect', '-f', '{{.LogPath}}', pod.container_id ?? ''];
    const path = (await mustRun('docker', ...inspect)).trim();
    const files = (await readdir(dirname(path))).filter((name) => name.startsWith(basename(path)));
    const sizes = await Promise.all(
      files.map(async (name) => (await stat(join(dirname(path), name))).size),
    );
    expect(files.length).toBeLessThanOrEqual(MAX_LOG_FILES);
    expect(Math.max(...sizes)).toBeLessThan(MAX_LOG_BYTES);
    expect(Math.max(...sizes)).toBeGreaterThan(MIB);
    expect((await host.view(pod.id)).phase).toBe('running');
  });
});

it('kills a process that ignores SIGTERM after the grace period', async () => {
  const began = systemClock.monotonicMs();
  await host.attack("trap '' TERM INT; while :; do sleep 1; done", async (pod) => {
    expect((await host.view(pod.id)).phase).toBe('running');
  });
  expect(systemClock.monotonicMs() - began).toBeLessThan(ATTACK_MS + 15_000);
});
