/** Hostile pods: each stays within its limits, and its host and neighbour keep answering. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  command,
  createRealHost,
  mustRun,
  type RealHost,
} from '../../test/fakes/agents/real-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';

const MIB = 2 ** 20;
const LIMITS = { cpu_cores: 0.5, memory_bytes: 48 * MIB, shm_bytes: 8 * MIB, pids: 48 };
const ATTACK_MS = 3_000;
/** The log driver's `max-file` and `max-size`, with room for one more line. */
const MAX_LOG_FILES = 3;
const MAX_LOG_BYTES = 51e6;
const PAUSE_MS = 50;
const ANSWER_TIMEOUT_MS = 5_000;

let host: RealHost;
let neighbour: PodView;

beforeAll(async () => {
  host = await createRealHost();
  neighbour = await host.launch();
  await eventually('the neighbour', () => answers(neighbourUrl()));
});

afterAll(() => host?.close());

const neighbourUrl = () => `http://127.0.0.1:${neighbour.ports['8000']}/`;
const agentUrl = () => `http://127.0.0.1:${host.agentPort}/healthz`;

async function answers(url: string): Promise<boolean> {
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  const answer = await fetch(url, { signal }).catch(() => null);
  await answer?.text();
  return answer?.ok === true;
}

/** Requests to agent and neighbour that stayed unanswered during the attack. */
async function watch(): Promise<string[]> {
  const unanswered: string[] = [];
  const untilMs = systemClock.monotonicMs() + ATTACK_MS;
  while (systemClock.monotonicMs() < untilMs) {
    for (const url of [agentUrl(), neighbourUrl()]) {
      if (!(await answers(url))) unanswered.push(url);
    }
    await systemClock.sleep(PAUSE_MS);
  }
  return unanswered;
}

/** Runs `script` as a pod, requires answers from host and neighbour, passes the pod to `inspect`, and removes it. */
async function attack(script: string, inspect: (pod: PodView) => Promise<void>): Promise<void> {
  const pod = await host.launch(script, {
    limits: LIMITS,
    internal_ports: [],
    stop_grace_seconds: 1,
  });
  try {
    expect(await watch()).toEqual([]);
    await inspect(pod);
  } finally {
    await host.remove(pod.id);
    await eventually('the removal', async () => (await host.view(pod.id)).phase === 'removed');
  }
  expect(await answers(neighbourUrl())).toBe(true);
}

const inPod = (pod: PodView, script: string) =>
  mustRun('docker', 'exec', pod.container_id ?? '', 'sh', '-c', script);

/** Counts processes through the engine, because the pod may not be able to start another process. */
async function processesOf(pod: PodView): Promise<number> {
  const lines = await mustRun('docker', 'top', pod.container_id ?? '', '-o', 'pid');
  return lines.trim().split('\n').length - 1;
}

it('limits a fork bomb to the pod’s processes', async () => {
  // Unlike a shell, awk continues if it cannot fork.
  const bomb = `exec awk 'BEGIN { while (1) system("sleep 30 & sleep 30 &") }'`;
  await attack(bomb, async (pod) => {
    const count = await processesOf(pod);
    expect(count).toBeLessThanOrEqual(LIMITS.pids);
    expect(count).toBeGreaterThan(LIMITS.pids / 2);
    expect((await host.view(pod.id)).phase).toBe('running');
  });
});

it('kills a pod that exceeds its memory and reports OOMKilled', async () => {
  await attack('tail /dev/zero; exit 9', async (pod) => {
    const exit = (await host.view(pod.id)).last_exit;
    expect(exit).toMatchObject({ oom_killed: true, reason: 'OOMKilled' });
  });
});

it('limits shared memory to the requested size', async () => {
  const fill = 'dd if=/dev/zero of=/dev/shm/x bs=64k 2>/tmp/words; sleep 60';
  await attack(fill, async (pod) => {
    const [size = '', words = ''] = (
      await inPod(pod, 'stat -c %s /dev/shm/x; cat /tmp/words')
    ).split('\n');
    expect(Number(size)).toBeLessThanOrEqual(LIMITS.shm_bytes);
    expect(Number(size)).toBeGreaterThan(LIMITS.shm_bytes / 2);
    expect(words).toMatch(/No space left/);
  });
});

it('stops a pod that fills the disk', async () => {
  const limits = { ...LIMITS, disk_bytes: 32 * MIB };
  const fill = 'dd if=/dev/zero of=/big bs=1M count=64; sleep 60';
  const pod = await host.launch(fill, { limits, internal_ports: [], stop_grace_seconds: 1 });
  const { diskQuota, diskWatch } = host.agent.core;
  const ended = await eventually('the end of the pod', async () => {
    await diskWatch.runOnce();
    // If the kernel enforces the limit, the write fails and the pod keeps running.
    if (diskQuota.found() === 'kernel') return (await inPod(pod, 'stat -c %s /big')).trim();
    const view = await host.view(pod.id);
    return view.phase === 'failed' && view.reason;
  });
  if (diskQuota.found() === 'kernel') expect(Number(ended)).toBeLessThanOrEqual(limits.disk_bytes);
  else expect(ended).toBe('DiskQuotaExceeded');
  await host.remove(pod.id);
});

it('limits the log files of a pod that floods its output', async () => {
  await attack('yes "$(seq 1 50 | tr -d "\\n")"', async (pod) => {
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
  await attack("trap '' TERM INT; while :; do sleep 1; done", async (pod) => {
    expect((await host.view(pod.id)).phase).toBe('running');
  });
  expect(systemClock.monotonicMs() - began).toBeLessThan(ATTACK_MS + 15_000);
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
  await attack(scan, async (pod) => {
    const read = ['exec', pod.container_id ?? '', 'cat', '/tmp/own', '/tmp/found'];
    const [self, ...found] = await eventually('the end of the scan', async () => {
      const { exitCode, stdout } = await command('docker', ...read);
      return exitCode === 0 && stdout.trim().split('\n');
    });
    expect(found).toEqual([self]);
  });
});
