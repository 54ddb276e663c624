/**
 * The operator's day: it reads accounts, the fleet, queues and the validator's records, proves the ledger, refunds a
 * pod, and bans a provider for a short time.
 */
import { z } from 'zod';
import { RECORD_IDS, validatorRecords } from '../../fixtures/validator-records.ts';
import * as account from './account.ts';
import type { DayScene } from './day-scene.ts';

const Accounts = z.object({
  accounts: z
    .array(
      z.object({
        id: z.uuid(),
        email: z.string(),
        name: z.string(),
        email_verified: z.boolean(),
        admin: z.boolean(),
        created_at: z.string(),
      }),
    )
    .min(1),
  page: z.int(),
  limit: z.int(),
  total: z.int(),
});
const AccountPod = z.object({
  id: z.uuid(),
  pod_name: z.string(),
  executor_id: z.uuid(),
  status: z.string(),
  gpu_count: z.int(),
  price_per_gpu_hour: z.number(),
  charged: z.number(),
  refunded: z.number(),
  refundable: z.number(),
  created_at: z.string(),
  ended_at: z.string().nullable(),
});
const Page = { page: z.int(), limit: z.int(), total: z.int() };
const Account = z.object({
  account: account.Account,
  pods: z.array(AccountPod).min(1),
  ...Page,
});
const Refunded = z.object({
  pod_id: z.uuid(),
  account_id: z.uuid(),
  amount: z.number(),
  group_id: z.string(),
  refunded_at: z.string(),
});
const Ban = z.object({ hotkey: z.string(), banned: z.boolean(), changed: z.literal(true) });
const Audit = z
  .array(
    z.object({
      seq: z.int(),
      operator: z.string(),
      action: z.string(),
      subject_type: z.string(),
      subject_id: z.string(),
      reason: z.string(),
      at: z.string(),
    }),
  )
  .min(4);

const Fleet = z.object({
  nodes: z
    .array(
      z.object({
        id: z.uuid(),
        huid: z.string(),
        provider_id: z.uuid(),
        miner_hotkey: z.string(),
        executor_ip_address: z.string(),
        executor_ip_port: z.string(),
        machine_name: z.string(),
        gpu_count: z.int(),
        free_gpu_count: z.int(),
        min_gpu_count: z.int(),
        price_per_gpu: z.number(),
        offer: z.string(),
        reasons: z.array(z.object({ code: z.string(), message: z.string() })),
        slots: z.array(z.object({ index: z.int(), pod_id: z.string().nullable() })),
        validator_hotkey: z.string().nullable(),
        checked_at: z.string().nullable(),
        last_seen_at: z.string().nullable(),
        simulated: z.boolean(),
        created_at: z.string(),
      }),
    )
    .min(1),
  ...Page,
});
const Summary = z.object({
  nodes: z.int(),
  gpus: z.int(),
  free_gpus: z.int(),
  free_not_rentable_gpus: z.int(),
  offers: z
    .array(z.object({ offer: z.string(), nodes: z.int(), gpus: z.int(), free_gpus: z.int() }))
    .min(1),
});
const Providers = z.object({
  providers: z
    .array(
      z.object({
        id: z.uuid(),
        hotkey: z.string(),
        coldkey: z.string().nullable(),
        email: z.string().nullable(),
        opted_in: z.boolean(),
        banned: z.boolean(),
        banned_at: z.string().nullable(),
        ban_reason: z.string().nullable(),
        nodes: z.int(),
        gpus: z.int(),
        free_gpus: z.int(),
        unpaid: z.number(),
        created_at: z.string(),
      }),
    )
    .min(1),
  ...Page,
});
const Counted = z.array(z.object({ state: z.string(), count: z.int() }));
const Queues = z.object({
  counted_at: z.string(),
  queues: z
    .array(
      z.object({
        kind: z.string(),
        due: z.int(),
        failing: z.int(),
        oldest_due_at: z.string().nullable(),
        oldest_age_seconds: z.number(),
      }),
    )
    .min(5),
  pods: Counted,
  nodes: Counted.min(1),
  mails: Counted,
});
const UnknownPod = z.object({
  executor_id: z.uuid(),
  executor_huid: z.string(),
  pod_id: z.uuid(),
  kind: z.enum(['missing', 'newer']),
  generation: z.int(),
  image: z.string(),
  gpu_count: z.int(),
  created_at: z.string(),
  found_at: z.string(),
  remove_requested_at: z.string().nullable(),
});
const UnknownPods = z.object({ total: z.int(), pods: z.array(UnknownPod).min(1) });
const Drift = z.object({
  last_day: z.array(z.object({ kind: z.string(), count: z.int() })),
  entries: z.array(
    z.object({
      seq: z.int(),
      kind: z.string(),
      corrected: z.boolean(),
      executor_id: z.uuid(),
      executor_huid: z.string(),
      pod_id: z.uuid(),
      at: z.string(),
    }),
  ),
  next: z.int().nullable(),
});
const Proof = z.object({
  state: z.string(),
  operator: z.string().nullable(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
  holds: z.boolean().nullable(),
  transfers: z.int().nullable(),
  accounts: z.int().nullable(),
  open_holds: z.int().nullable(),
  balance_hash: z.string().nullable(),
  findings: z.array(z.object({ rule: z.string(), where: z.string(), what: z.string() })),
  more_findings: z.int(),
  error: z.string().nullable(),
});

const OperatorClock = z.object({
  state: z.enum(['trusted', 'suspect']),
  reason: z.string().nullable(),
  time: z.string(),
  host_time: z.string(),
  peer_time: z.string().nullable(),
});

/** Records of the validator by path; the relay's answers are compared with the OpenAPI document in any case. */
const RECORDS: readonly (readonly [path: string, model: z.ZodType])[] = [
  ['', z.object({ hotkey: z.string(), messages_waiting: z.int() })],
  ['/cycles', z.object({ cycles: z.array(z.object({ number: z.int() })).min(1) })],
  [
    '/cycles/{number}/verdicts',
    z.object({ verdicts: z.array(z.object({ evidence_id: z.string() })).min(1) }),
  ],
  [
    '/executors/{id}/evidence',
    z.object({ documents: z.array(z.object({ id: z.string(), seq: z.int() })).min(1) }),
  ],
  ['/epochs', z.object({ epochs: z.array(z.object({ id: z.string() })).min(1) })],
  ['/epochs/{number}', z.object({ claim: z.string(), payload: z.string(), policy: z.string() })],
  [
    '/epochs/{number}/weights',
    z.object({ weights: z.array(z.object({ uid: z.int(), weight: z.int() })).min(1) }),
  ],
  ['/epochs/{number}/executors/{id}', z.object({ factors: z.array(z.object({})).min(1) })],
  ['/releases', z.object({ releases: z.array(z.object({ digest: z.string() })).min(1) })],
];
const Evidence = z.object({
  id: z.string(),
  executor_id: z.uuid(),
  seq: z.int(),
  finished_at: z.string(),
  verdict: z.string(),
  signed_as: z.string(),
  document: z.string(),
  signature: z.string(),
});

async function readValidator(
  { api, market }: DayScene,
  headers: Record<string, string>,
  nodeId: string,
): Promise<void> {
  for (const [path, record] of validatorRecords(nodeId)) market.agents.records.set(path, record);
  const params = { id: nodeId, number: RECORD_IDS.epoch };
  for (const [path, model] of RECORDS) {
    await api.call(`GET /operator/validator${path}`, model, { headers, params });
  }
  await api.call('GET /operator/validator/evidence/{id}', Evidence, {
    headers,
    params: { id: RECORD_IDS.evidence },
  });
}

/**
 * Creates and resolves two unknown pods: the node runs a newer generation of the pod than the database has, and a pod
 * that the database does not have.
 */
async function decideUnknownPods(
  { api, market, settle }: DayScene,
  headers: Record<string, string>,
  { nodeId, podId }: { nodeId: string; podId: string },
): Promise<void> {
  const host = market.agents.host(nodeId);
  const view = host.pods.get(podId);
  if (view === undefined) throw new Error(`the node does not run the pod ${podId}`);
  host.change(podId, { generation: view.generation + 3 });
  const missing = { ...view, id: '5b0c0ae2-6a4d-4c1c-9d0e-6f1b3f8f7a01' };
  host.pods.set(missing.id, missing);
  await settle();
  await api.call('GET /operator/unknown-pods', UnknownPods, { headers });
  const body = { reason: 'the database is an old copy' };
  for (const [act, id] of [
    ['adopt', podId],
    ['remove', missing.id],
  ] as const) {
    const params = { id: nodeId, pod_id: id };
    const route = `POST /operator/executors/{id}/unknown-pods/{pod_id}/${act}`;
    await api.call(route, UnknownPod, { headers, params, body });
  }
  // A pass removes the pod; a later one finds that it is gone.
  await settle();
}

/** Lets a node lose the pod with this id, and reads the fleet, the differences and the queues as an operator. */
export async function watchMarket(scene: DayScene, podId: string): Promise<void> {
  const { api, market } = scene;
  const operator = await market.signUp();
  await market.setOperator(operator);
  const headers = operator.session;
  const { nodes } = await api.call('GET /operator/fleet', Fleet, { headers });
  const node = nodes.find(({ slots }) => slots.some((slot) => slot.pod_id === podId));
  if (node === undefined) throw new Error(`no node has the pod ${podId}`);
  market.agents.host(node.id).pods.delete(podId);
  await scene.settle();
  await decideUnknownPods(scene, headers, { nodeId: node.id, podId });
  await api.call('GET /operator/drift', Drift, { headers });
  await api.call('GET /operator/queues', Queues, { headers });
}

/** Sends the operator's requests. The renter `renterId` must have a pod that ended. */
export async function operate(scene: DayScene, renterId: string): Promise<void> {
  const { api, market } = scene;
  const { call } = api;
  const operator = await market.signUp();
  await market.setOperator(operator);
  const headers = operator.session;
  await call('GET /operator/accounts', Accounts, { headers, query: { q: 'renter@' } });
  const params = { id: renterId };
  const { pods } = await call('GET /operator/accounts/{id}', Account, { headers, params });
  const charged = pods.find((pod) => pod.charged > 0);
  if (charged === undefined) throw new Error('no pod was charged');
  await call('POST /operator/pods/{id}/refund', Refunded, {
    headers,
    params: { id: charged.id },
    body: { reason: 'the image did not start' },
  });
  for (const act of ['ban', 'unban']) {
    await call(`POST /operator/providers/{hotkey}/${act}`, Ban, {
      headers,
      params: { hotkey: market.provider.hotkey },
      body: { reason: 'sold cards that do not exist' },
    });
    await call('GET /operator/fleet', Fleet, { headers });
  }
  await call('GET /operator/audit', Audit, { headers });
  const { nodes } = await call('GET /operator/fleet', Fleet, { headers });
  await call('GET /operator/fleet/summary', Summary, { headers });
  await call('GET /operator/providers', Providers, { headers });
  await call('GET /operator/ledger-proof', Proof, { headers });
  await call('POST /operator/ledger-proof', Proof, { headers });
  await call('GET /operator/clock', OperatorClock, { headers });
  await call('POST /operator/clock/confirm', OperatorClock, {
    headers,
    body: { reason: 'the host was off for three weeks' },
  });
  await readValidator(scene, headers, nodes[0]?.id ?? '');
}
