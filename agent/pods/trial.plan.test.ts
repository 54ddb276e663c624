import { expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import { type ContainerState, LABELS } from '../containers/engine/engine.ts';
import type { PlanFacts } from './plan-facts.ts';
import { planPod } from './pod.plan.ts';
import type { PodRow } from './pod.store.ts';
import { newPodRow } from './pod-row.ts';
import { LOGIN_WAIT_MS, SETTLING_MS, TRIAL_DEADLINE_MS } from './trial.plan.ts';

const NOW = 1_000_000;
const FACTS: PlanFacts = {
  nowMs: NOW,
  bootId: 'boot',
  outage: { fromMs: 0, toMs: 0 },
  watchingSinceMs: 2_000,
  launchHash: 'hash',
  login: { kind: 'none' },
  surplusLeases: false,
  paused: false,
};
const spec_json = JSON.stringify(PodSpec.parse(podSpec()));
const before = { generation: 1, spec_json, spec_hash: 'one', image_id: 'i', image_digest: null };
const fallback = (change = {}) =>
  JSON.stringify({ ...before, since_ms: NOW - 1_000, login_worked: false, ...change });
const staged = (image_id: string | null) =>
  JSON.stringify({ ...before, generation: 3, image_id, attempts: 0, reason: null, message: '' });

/** Generation 2 is on trial, generation 1 is the fallback. */
function row(change: Partial<PodRow> = {}): PodRow {
  return {
    ...newPodRow('pod', 2, { spec_json, spec_hash: '' }, 0),
    boot_id: 'boot',
    image_id: 'image',
    fallback_json: fallback(),
    ...change,
  };
}

function container(generation: number, change: Partial<ContainerState> = {}): ContainerState {
  return {
    id: `c${generation}`,
    name: `pod-g${generation}`,
    labels: { [LABELS.generation]: String(generation), [LABELS.specHash]: 'hash' },
    status: 'exited',
    exitCode: 0,
    oomKilled: false,
    startError: '',
    startedMs: 5_000,
    finishedMs: 6_000,
    imageId: 'image',
    createdMs: 0,
    pid: 0,
    networks: ['podwright-net'],
    logPath: '',
    ...change,
  };
}

const kept = container(1);
const made = container(2, { status: 'created', startedMs: 0, finishedMs: 0 });
const ranFor = (ms: number) => container(2, { status: 'running', startedMs: NOW - ms });
const known = { phase: 'running', container_id: 'c2' } as const;
const fails = { login: { kind: 'fails', message: 'no shell' } } as const;

const hostReboot = JSON.stringify({
  ...{ exit_code: 137, oom_killed: false, finished_ms: 6_000, reason: 'HostReboot' },
});

type Case = [string, Partial<PodRow>, ContainerState[], object, Partial<PlanFacts>?];

it.each<Case>([
  [
    'image not there yet',
    { ...known, generation: 1, container_id: 'c1', fallback_json: null, staged_json: staged(null) },
    [container(1, { status: 'running' })],
    { kind: 'wait', untilMs: null },
  ],
  ['image there', { fallback_json: null, staged_json: staged('x') }, [kept], { kind: 'switch' }],
  ['image of a still newer one there', { staged_json: staged('x') }, [kept], { kind: 'switch' }],
  [
    'old one still runs',
    {},
    [container(1, { status: 'running' })],
    { kind: 'stop_fallback', container: { id: 'c1' } },
  ],
  [
    'old one started by hand beside the new one',
    known,
    [container(1, { status: 'running' }), ranFor(100)],
    { kind: 'stop_fallback', container: { id: 'c1' } },
  ],
  ['old one stopped', {}, [kept], { kind: 'create' }],
  ['old one gone', {}, [], { kind: 'create' }],
  ['leases of a superseded one', {}, [kept], { kind: 'release_leases' }, { surplusLeases: true }],
  ['made', { phase: 'starting', container_id: 'c2' }, [kept, made], { kind: 'start' }],
  ['runs, row behind', { phase: 'starting' }, [kept, ranFor(9_000)], { kind: 'adopt' }],
  ['settles', known, [kept, ranFor(1_000)], { kind: 'wait', untilMs: NOW + SETTLING_MS - 1_000 }],
  ['has settled', known, [kept, ranFor(SETTLING_MS)], { kind: 'commit_change' }],
  ['clock set back', known, [kept, ranFor(-3_600_000)], { kind: 'commit_change' }],
  [
    'login never worked',
    { ...known, fallback_json: fallback() },
    [kept, ranFor(SETTLING_MS)],
    { kind: 'commit_change' },
    fails,
  ],
  [
    'login worked and does not yet',
    { ...known, fallback_json: fallback({ login_worked: true }) },
    [kept, ranFor(SETTLING_MS)],
    { kind: 'wait', untilMs: NOW + 500 },
    fails,
  ],
  [
    'login works again',
    { ...known, fallback_json: fallback({ login_worked: true }) },
    [kept, ranFor(SETTLING_MS)],
    { kind: 'commit_change' },
    { login: { kind: 'works' } },
  ],
  [
    'login does not come back',
    { ...known, fallback_json: fallback({ login_worked: true }) },
    [kept, ranFor(LOGIN_WAIT_MS)],
    { kind: 'roll_back', cause: { reason: 'StartFailed' } },
    fails,
  ],
  [
    'gateway away',
    { ...known, fallback_json: fallback({ login_worked: true }) },
    [kept, ranFor(LOGIN_WAIT_MS)],
    { kind: 'commit_change' },
    { login: { kind: 'unknown' } },
  ],
  [
    'exited while settling',
    known,
    [kept, container(2, { exitCode: 3 })],
    { kind: 'roll_back', cause: { reason: 'ExitedNonZero' } },
  ],
  [
    'stopped by a reboot of the host',
    { ...known, boot_id: 'earlier boot' },
    [kept, container(2, { exitCode: 255 })],
    { kind: 'record_exit', cause: 'host_reboot' },
  ],
  [
    'stopped by a reboot of the host, recorded',
    { phase: 'backoff', next_retry_ms: NOW, container_id: 'c2', last_exit_json: hostReboot },
    [kept, container(2)],
    { kind: 'start' },
  ],
  ['gave up', { phase: 'failed', reason: 'StartFailed' }, [kept, made], { kind: 'roll_back' }],
  ['name taken', { phase: 'quarantined', reason: 'NameTaken' }, [kept], { kind: 'roll_back' }],
  ['vanished', known, [kept], { kind: 'roll_back', cause: { reason: 'Internal' } }],
  ['image vanished', { image_id: null }, [kept], { kind: 'roll_back' }],
  [
    'start failed, backoff ahead',
    { phase: 'backoff', next_retry_ms: NOW + 2_000, container_id: 'c2' },
    [kept, made],
    { kind: 'wait', untilMs: NOW + 2_000 },
  ],
  [
    'does not start in time',
    { phase: 'backoff', reason: 'StartFailed', next_retry_ms: NOW + 2_000, container_id: 'c2' },
    [kept, made],
    { kind: 'roll_back', cause: null },
    { nowMs: NOW + TRIAL_DEADLINE_MS },
  ],
  [
    'old one cannot be stopped',
    { phase: 'backoff', reason: 'DeadlineExceeded', next_retry_ms: NOW + 2_000 },
    [container(1, { status: 'running' })],
    { kind: 'wait', untilMs: NOW + 2_000 },
  ],
  [
    'old one could not be stopped for long',
    { phase: 'backoff', reason: 'DeadlineExceeded', next_retry_ms: NOW },
    [container(1, { status: 'running' })],
    { kind: 'roll_back', cause: null },
    { nowMs: NOW + TRIAL_DEADLINE_MS },
  ],
  [
    'agent was away for long',
    {},
    [kept],
    { kind: 'create' },
    { nowMs: NOW + TRIAL_DEADLINE_MS, watchingSinceMs: NOW + TRIAL_DEADLINE_MS - 1 },
  ],
  ['third one left over', {}, [kept, container(5)], { kind: 'remove_containers' }],
  [
    'made for other ports',
    {},
    [kept, container(2, { labels: { [LABELS.generation]: '2', [LABELS.specHash]: 'x' } })],
    { kind: 'remove_containers', containers: [{ id: 'c2' }] },
  ],
  [
    'removal takes both',
    { desired: 'removed', phase: 'removing' },
    [kept, made],
    { kind: 'remove_containers', containers: [kept, made] },
  ],
  [
    'rolled back: what is left of the new one goes first',
    { generation: 1, fallback_json: null },
    [kept, ranFor(100)],
    { kind: 'remove_containers', containers: [{ id: 'c2' }] },
  ],
  [
    'rolled back: the old one starts, its stop was no exit',
    { generation: 1, fallback_json: null },
    [kept],
    { kind: 'start', container: { id: 'c1' } },
  ],
])('%s', (_, change, containers, step, facts = {}) => {
  expect(planPod(row(change), containers, { ...FACTS, ...facts })).toMatchObject(step);
});
