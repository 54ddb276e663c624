import { expect, it } from 'vitest';
import { type ContainerState, LABELS } from '../containers/engine/engine.ts';
import type { PlanFacts } from './plan-facts.ts';
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
  ['runs as known', {}, [container()], { kind: 'wait', untilMs: null }],
  ['paused by hand', {}, [container({ status: 'paused' })], { kind: 'wait', untilMs: null }],
  ['runs without its network', {}, [container({ networks: [] })], { kind: 'rejoin_network' }],
  ['runs, row behind', { phase: 'starting' }, [container()], { kind: 'adopt' }],
  ['runs, other id', { container_id: 'x' }, [container()], { kind: 'adopt' }],
  ['runs, since an unknown boot', { boot_id: '' }, [container()], { kind: 'adopt' }],
  ['exited', {}, [exited], { kind: 'record_exit', cause: 'itself' }],
  ['exited, boot never noted', { boot_id: '' }, [exited], { kind: 'record_exit', cause: 'itself' }],
  [
    'exited by a host reboot, whatever the clock says',
    { boot_id: 'earlier boot' },
    [container({ status: 'exited', startedMs: 999_000, finishedMs: 999_500 })],
    { kind: 'record_exit', cause: 'host_reboot' },
  ],
  [
    'ended while the engine was away',
    {},
    [container({ status: 'exited', finishedMs: 25_000 })],
    { kind: 'record_exit', cause: 'engine_restart' },
  ],
  [
    'started after the engine came back',
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
    'backoff absurdly far, as after a clock set back',
    { phase: 'backoff', last_exit_json: lastExit(9_000), next_retry_ms: 90_000_000 },
    [exited],
    { kind: 'start' },
  ],
  [
    'exited again after its restart',
    { phase: 'starting', last_exit_json: lastExit(8_000) },
    [exited],
    { kind: 'record_exit' },
  ],
  [
    'failed start left an exit code',
    { phase: 'backoff', next_retry_ms: 0 },
    [container({ status: 'exited', startError: 'no', finishedMs: 9_000 })],
    { kind: 'start' },
  ],
  ['gone', {}, [], { kind: 'record_lost' }],
  ['older generation', fresh, [old], { kind: 'remove_containers', containers: [old] }],
  ['both generations', {}, [old, container()], { kind: 'remove_containers', containers: [old] }],
  ['made for other ports', {}, [otherPorts], { kind: 'remove_containers' }],
  ['dead', {}, [container({ status: 'dead' })], { kind: 'remove_containers' }],
  ['being removed', {}, [container({ status: 'removing' })], { kind: 'wait', untilMs: 1_000_500 }],
  ['reboot asked', { reboots_requested: 1 }, [container()], { kind: 'begin_reboot' }],
  [
    'reboot asked in backoff does not wait',
    { reboots_requested: 1, phase: 'backoff', next_retry_ms: 1_000_001 },
    [exited],
    { kind: 'begin_reboot' },
  ],
  [
    'rebooting, not stopped',
    { ...rebooting, reboot_from_ms: 5_000 },
    [container()],
    { kind: 'stop_for_reboot' },
  ],
  ['rebooting, stopped', { ...rebooting, reboot_from_ms: 5_000 }, [exited], { kind: 'start' }],
  [
    'rebooting, started, not written',
    { ...rebooting, reboot_from_ms: 4_000 },
    [container()],
    { kind: 'finish_reboot' },
  ],
  ['rebooting, gone', rebooting, [], { kind: 'record_lost' }],
  ['failed rests', { phase: 'failed' }, [exited], { kind: 'wait', untilMs: null }],
  ['quarantined rests', { phase: 'quarantined' }, [], { kind: 'wait', untilMs: null }],
  [
    'removal takes every container',
    { desired: 'removed', phase: 'removing' },
    [old, exited],
    { kind: 'remove_containers', containers: [old, exited] },
  ],
  ['removal ends', { desired: 'removed', phase: 'removing' }, [], { kind: 'finish_removal' }],
  [
    'failed removal waits',
    { desired: 'removed', phase: 'removing', next_retry_ms: 1_000_001 },
    [],
    { kind: 'wait', untilMs: 1_000_001 },
  ],
  [
    'a container that comes after the removal',
    { desired: 'removed', phase: 'removed' },
    [old],
    { kind: 'remove_containers', containers: [old] },
  ],
  ['removed rests', { desired: 'removed', phase: 'removed' }, [], { kind: 'wait', untilMs: null }],
])('%s', (_, change, containers, step) => {
  expect(planPod(row(change), containers, FACTS)).toMatchObject(step);
});

it('keeps a paused pod stopped, except for its removal', () => {
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
