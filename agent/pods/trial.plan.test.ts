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
  exit_code: 137,
  oom_killed: false,
  finished_ms: 6_000,
  reason: 'HostReboot',
});

type Case = [string, Partial<PodRow>, ContainerState[], object, Partial<PlanFacts>?];

it.each<Case>([
  [
    'staged image not fetched yet',
    { ...known, generation: 1, container_id: 'c1', fallback_json: null, staged_json: staged(null) },
    [container(1, { status: 'running' })],
    { kind: 'wait', untilMs: null },
  ],
  [
    'staged image fetched',
    { fallback_json: null, staged_json: staged('x') },
    [kept],
    { kind: 'switch' },
  ],
  [
    'image of an even newer generation fetched',
    { staged_json: staged('x') },
    [kept],
    { kind: 'switch' },
  ],
  [
    'old container still runs',
    {},
    [container(1, { status: 'running' })],
    { kind: 'stop_fallback', container: { id: 'c1' } },
  ],
  [
    'old container started by another program beside the new container',
    known,
    [container(1, { status: 'running' }), ranFor(100)],
    { kind: 'stop_fallback', container: { id: 'c1' } },
  ],
  ['old container stopped', {}, [kept], { kind: 'create' }],
  ['old container vanished', {}, [], { kind: 'create' }],
  [
    'leases of a superseded generation',
    {},
    [kept],
    { kind: 'release_leases' },
    { surplusLeases: true },
  ],
  ['made', { phase: 'starting', container_id: 'c2' }, [kept, made], { kind: 'start' }],
  [
    'new container runs, row not updated yet',
    { phase: 'starting' },
    [kept, ranFor(9_000)],
    { kind: 'adopt' },
  ],
  ['settles', known, [kept, ranFor(1_000)], { kind: 'wait', untilMs: NOW + SETTLING_MS - 1_000 }],
  [
    'new container has run long enough',
    known,
    [kept, ranFor(SETTLING_MS)],
    { kind: 'commit_change' },
  ],
  ['clock set back', known, [kept, ranFor(-3_600_000)], { kind: 'commit_change' }],
  [
    'login never worked',
    { ...known, fallback_json: fallback() },
    [kept, ranFor(SETTLING_MS)],
    { kind: 'commit_change' },
    fails,
  ],
  [
    'login worked before and does not work yet',
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
    'login does not work again in time',
    { ...known, fallback_json: fallback({ login_worked: true }) },
    [kept, ranFor(LOGIN_WAIT_MS)],
    { kind: 'roll_back', cause: { reason: 'StartFailed' } },
    fails,
  ],
  [
    'gateway has not reported',
    { ...known, fallback_json: fallback({ login_worked: true }) },
    [kept, ranFor(LOGIN_WAIT_MS)],
    { kind: 'commit_change' },
    { login: { kind: 'unknown' } },
  ],
  [
    'new container exited during the trial',
    known,
    [kept, container(2, { exitCode: 3 })],
    { kind: 'roll_back', cause: { reason: 'ExitedNonZero' } },
  ],
  [
    'new container stopped by a reboot of the host',
    { ...known, boot_id: 'earlier boot' },
    [kept, container(2, { exitCode: 255 })],
    { kind: 'record_exit', cause: 'host_reboot' },
  ],
  [
    'new container stopped by a reboot of the host, exit recorded',
    { phase: 'backoff', next_retry_ms: NOW, container_id: 'c2', last_exit_json: hostReboot },
    [kept, container(2)],
    { kind: 'start' },
  ],
  [
    'new generation failed permanently',
    { phase: 'failed', reason: 'StartFailed' },
    [kept, made],
    { kind: 'roll_back' },
  ],
  [
    'container name taken by another owner',
    { phase: 'quarantined', reason: 'NameTaken' },
    [kept],
    { kind: 'roll_back' },
  ],
  ['vanished', known, [kept], { kind: 'roll_back', cause: { reason: 'Internal' } }],
  ['image of the new generation vanished', { image_id: null }, [kept], { kind: 'roll_back' }],
  [
    'start failed, retry is in the future',
    { phase: 'backoff', next_retry_ms: NOW + 2_000, container_id: 'c2' },
    [kept, made],
    { kind: 'wait', untilMs: NOW + 2_000 },
  ],
  [
    'new container does not start in time',
    { phase: 'backoff', reason: 'StartFailed', next_retry_ms: NOW + 2_000, container_id: 'c2' },
    [kept, made],
    { kind: 'roll_back', cause: null },
    { nowMs: NOW + TRIAL_DEADLINE_MS },
  ],
  [
    'old container cannot be stopped',
    { phase: 'backoff', reason: 'DeadlineExceeded', next_retry_ms: NOW + 2_000 },
    [container(1, { status: 'running' })],
    { kind: 'wait', untilMs: NOW + 2_000 },
  ],
  [
    'old container could not be stopped for a long time',
    { phase: 'backoff', reason: 'DeadlineExceeded', next_retry_ms: NOW },
    [container(1, { status: 'running' })],
    { kind: 'roll_back', cause: null },
    { nowMs: NOW + TRIAL_DEADLINE_MS },
  ],
  [
    'agent did not run for a long time',
    {},
    [kept],
    { kind: 'create' },
    { nowMs: NOW + TRIAL_DEADLINE_MS, watchingSinceMs: NOW + TRIAL_DEADLINE_MS - 1 },
  ],
  [
    'container of a third generation left over',
    {},
    [kept, container(5)],
    { kind: 'remove_containers' },
  ],
  [
    'new container created with other ports',
    {},
    [kept, container(2, { labels: { [LABELS.generation]: '2', [LABELS.specHash]: 'x' } })],
    { kind: 'remove_containers', containers: [{ id: 'c2' }] },
  ],
  [
    'removal removes both containers',
    { desired: 'removed', phase: 'removing' },
    [kept, made],
    { kind: 'remove_containers', containers: [kept, made] },
  ],
  [
    'after a rollback, the new container is removed first',
    { generation: 1, fallback_json: null },
    [kept, ranFor(100)],
    { kind: 'remove_containers', containers: [{ id: 'c2' }] },
  ],
  [
    'after a rollback, the old container starts and its stop is not recorded as an exit',
    { generation: 1, fallback_json: null },
    [kept],
    { kind: 'start', container: { id: 'c1' } },
  ],
])('plans the next step of a trial: %s', (_, change, containers, step, facts = {}) => {
  expect(planPod(row(change), containers, { ...FACTS, ...facts })).toMatchObject(step);
});
