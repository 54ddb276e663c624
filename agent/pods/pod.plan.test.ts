import { expect, it } from 'vitest';
import { type ContainerState, LABELS } from '../containers/engine/engine.ts';
import { OOM_REPORT_MS, type PlanFacts } from './plan-facts.ts';
import { planPod } from './pod.plan.ts';
import type { PodRow } from './pod.store.ts';
import { newPodRow } from './pod-row.ts';

const FACTS: PlanFacts = {
  nowMs: 1_000_000,
  bootId: 'boot',
  outage: { fromMs: 20_000, toMs: 30_000 },
  watchingSinceMs: 2_000,
  launchHash: 'hash',
  login: { kind: 'none' },
  surplusLeases: false,
  paused: false,
};

function row(change: Partial<PodRow> = {}): PodRow {
  return {
    ...newPodRow('pod', 2, { spec_json: '{}', spec_hash: '' }, 0),
    phase: 'running',
    observed_generation: 2,
    image_id: 'image',
    container_id: 'c',
    boot_id: 'boot',
    ...change,
  };
}

function container(change: Partial<ContainerState> = {}): ContainerState {
  return {
    id: 'c',
    name: 'pod-g2',
    labels: { [LABELS.generation]: '2', [LABELS.specHash]: 'hash' },
    status: 'running',
    exitCode: 0,
    oomKilled: false,
    startError: '',
    startedMs: 5_000,
    finishedMs: 0,
    imageId: 'image',
    createdMs: 0,
    pid: 0,
    networks: ['podwright-net'],
    logPath: '',
    ...change,
  };
}

const exited = container({ status: 'exited', finishedMs: 9_000 });
const lastExit = (finished_ms: number) =>
  JSON.stringify({ exit_code: 0, oom_killed: false, finished_ms, reason: 'ExitedZero' });
const fresh = { container_id: null, phase: 'pending' } as const;
const rebooting = { phase: 'rebooting', reboots_requested: 1, reboot_target: 1 } as const;
const old = container({ id: 'old', labels: { [LABELS.generation]: '1', [LABELS.specHash]: 'x' } });
const otherPorts = container({ labels: { [LABELS.generation]: '2', [LABELS.specHash]: 'x' } });

it.each<[string, Partial<PodRow>, ContainerState[], object]>([
  ['new', { ...fresh, image_id: null }, [], { kind: 'pull' }],
  ['image ready', fresh, [], { kind: 'create' }],
  ['created', { phase: 'starting' }, [container({ status: 'created' })], { kind: 'start' }],
  ['container runs, row is current', {}, [container()], { kind: 'wait', untilMs: null }],
  [
    'container paused by another program',
    {},
    [container({ status: 'paused' })],
    { kind: 'wait', untilMs: null },
  ],
  [
    'container runs without its network',
    {},
    [container({ networks: [] })],
    { kind: 'rejoin_network' },
  ],
  ['container runs, row not updated yet', { phase: 'starting' }, [container()], { kind: 'adopt' }],
  [
    'container runs with another id than the row’s',
    { container_id: 'x' },
    [container()],
    { kind: 'adopt' },
  ],
  ['container runs, its boot is unknown', { boot_id: '' }, [container()], { kind: 'adopt' }],
  ['exited', {}, [exited], { kind: 'record_exit', cause: 'itself' }],
  [
    'killed just now, perhaps because it was out of memory',
    {},
    [container({ status: 'exited', exitCode: 137, finishedMs: 999_900 })],
    { kind: 'wait', untilMs: 999_900 + OOM_REPORT_MS },
  ],
  [
    'killed just now because it was out of memory',
    {},
    [container({ status: 'exited', exitCode: 137, oomKilled: true, finishedMs: 999_900 })],
    { kind: 'record_exit', cause: 'itself' },
  ],
  [
    'killed, and no report of the engine',
    {},
    [container({ status: 'exited', exitCode: 137, finishedMs: 1_000_000 - OOM_REPORT_MS })],
    { kind: 'record_exit', cause: 'itself' },
  ],
  [
    'container exited, its boot is unknown',
    { boot_id: '' },
    [exited],
    { kind: 'record_exit', cause: 'itself' },
  ],
  [
    'container exited by a host reboot, whatever the clock shows',
    { boot_id: 'earlier boot' },
    [container({ status: 'exited', startedMs: 999_000, finishedMs: 999_500 })],
    { kind: 'record_exit', cause: 'host_reboot' },
  ],
  [
    'container ended while the engine did not answer',
    {},
    [container({ status: 'exited', finishedMs: 25_000 })],
    { kind: 'record_exit', cause: 'engine_restart' },
  ],
  [
    'container started after the engine answered again',
    {},
    [container({ status: 'exited', startedMs: 30_000, finishedMs: 30_000 })],
    { kind: 'record_exit', cause: 'itself' },
  ],
  [
    'exit recorded, backoff ahead',
    { phase: 'backoff', last_exit_json: lastExit(9_000), next_retry_ms: 1_000_001 },
    [exited],
    { kind: 'wait', untilMs: 1_000_001 },
  ],
  [
    'exit recorded, backoff over',
    { phase: 'backoff', last_exit_json: lastExit(9_000), next_retry_ms: 1_000_000 },
    [exited],
    { kind: 'start' },
  ],
  [
    'retry too far ahead because the clock was set back',
    { phase: 'backoff', last_exit_json: lastExit(9_000), next_retry_ms: 90_000_000 },
    [exited],
    { kind: 'start' },
  ],
  [
    'container exited again after its restart',
    { phase: 'starting', last_exit_json: lastExit(8_000) },
    [exited],
    { kind: 'record_exit' },
  ],
  [
    'container whose start failed with an exit code',
    { phase: 'backoff', next_retry_ms: 0 },
    [container({ status: 'exited', startError: 'no', finishedMs: 9_000 })],
    { kind: 'start' },
  ],
  ['gone', {}, [], { kind: 'record_lost' }],
  [
    'container of an older generation',
    fresh,
    [old],
    { kind: 'remove_containers', containers: [old] },
  ],
  [
    'containers of both generations',
    {},
    [old, container()],
    { kind: 'remove_containers', containers: [old] },
  ],
  ['container created with other ports', {}, [otherPorts], { kind: 'remove_containers' }],
  ['dead', {}, [container({ status: 'dead' })], { kind: 'remove_containers' }],
  [
    'container that the engine is removing',
    {},
    [container({ status: 'removing' })],
    { kind: 'wait', untilMs: 1_000_500 },
  ],
  ['reboot requested', { reboots_requested: 1 }, [container()], { kind: 'begin_reboot' }],
  [
    'reboot requested during backoff starts at once',
    { reboots_requested: 1, phase: 'backoff', next_retry_ms: 1_000_001 },
    [exited],
    { kind: 'begin_reboot' },
  ],
  [
    'rebooting, container not stopped yet',
    { ...rebooting, reboot_from_ms: 5_000 },
    [container()],
    { kind: 'stop_for_reboot' },
  ],
  [
    'rebooting, container stopped',
    { ...rebooting, reboot_from_ms: 5_000 },
    [exited],
    { kind: 'start' },
  ],
  [
    'rebooting, container restarted, row not updated yet',
    { ...rebooting, reboot_from_ms: 4_000 },
    [container()],
    { kind: 'finish_reboot' },
  ],
  ['rebooting, container vanished', rebooting, [], { kind: 'record_lost' }],
  [
    'failed pod waits for a request',
    { phase: 'failed' },
    [exited],
    { kind: 'wait', untilMs: null },
  ],
  [
    'quarantined pod waits for a request',
    { phase: 'quarantined' },
    [],
    { kind: 'wait', untilMs: null },
  ],
  [
    'removal removes every container',
    { desired: 'removed', phase: 'removing' },
    [old, exited],
    { kind: 'remove_containers', containers: [old, exited] },
  ],
  [
    'removal finishes when no container is left',
    { desired: 'removed', phase: 'removing' },
    [],
    { kind: 'finish_removal' },
  ],
  [
    'failed removal waits for its retry',
    { desired: 'removed', phase: 'removing', next_retry_ms: 1_000_001 },
    [],
    { kind: 'wait', untilMs: 1_000_001 },
  ],
  [
    'container that appears after the removal',
    { desired: 'removed', phase: 'removed' },
    [old],
    { kind: 'remove_containers', containers: [old] },
  ],
  [
    'removed pod has nothing to do',
    { desired: 'removed', phase: 'removed' },
    [],
    { kind: 'wait', untilMs: null },
  ],
])('plans the next step: %s', (_, change, containers, step) => {
  expect(planPod(row(change), containers, FACTS)).toMatchObject(step);
});

it('keeps a paused pod stopped, but removes it on request', () => {
  const held = { ...FACTS, paused: true };
  const running = container();
  const stop = { kind: 'stop_for_pause', container: running };
  expect(planPod(row(), [running], held)).toEqual(stop);
  expect(planPod(row(rebooting), [running], held)).toEqual(stop);
  expect(planPod(row({ phase: 'pending' }), [exited], held)).toEqual({
    kind: 'wait',
    untilMs: null,
  });
  expect(planPod(row({ phase: 'pending' }), [exited], FACTS)).toMatchObject({ kind: 'start' });
  expect(planPod(row({ desired: 'removed' }), [running], held)).toMatchObject({
    kind: 'remove_containers',
  });
});
