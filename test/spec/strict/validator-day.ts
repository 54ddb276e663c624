/** The validator's day: it reads the nodes to check, reports verdicts and posts weights. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { signReport } from '#shared/api/central/pod-reports.ts';
import { signSetWeights } from '#shared/api/central/set-weights.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import { testInventory } from '../../fixtures/host-inventory.ts';
import type { DayScene } from './day-scene.ts';
import { ReportedOutcome } from './pods.ts';
import { Success } from './types.ts';
import * as validators from './validators.ts';

const BERLIN = { lat: 52.5, lon: 13.4 };
const PASSED = {
  check_id: 'agent',
  passed: true,
  reason_code: null,
  measured: 'answers',
  required: 'answers',
  message: 'The agent answers',
  remediation: '',
};

/** A clock that advances, because a signature of the same second would be a replay. */
async function signedHeaders({ market: { validator, clock } }: DayScene) {
  await clock.advance(1_000);
  const timestamp = String(Math.floor(clock.now() / 1_000));
  const signature = toHex(validator.sign(new TextEncoder().encode(timestamp)));
  return { hotkey: validator.hotkey, timestamp, signature };
}

/** Reads which nodes there are to check. */
export async function readNodes(scene: DayScene): Promise<void> {
  const { api, market } = scene;
  await api.call('POST /validator/{validator_hotkey}/executors', validators.NodesToCheck, {
    params: { validator_hotkey: market.validator.hotkey },
    headers: await signedHeaders(scene),
  });
}

/** Checks a node with two GPUs that was added, and reports that it passed. */
export async function checkNode(
  scene: DayScene,
  node: { id: string; port: number },
): Promise<void> {
  const { api, market } = scene;
  const { validator, clock } = market;
  await readNodes(scene);
  const report = {
    verdict: 'verified',
    checked_at_ms: clock.now(),
    checks: [PASSED],
    inventory: withNvlink(testInventory(node.id, { collectedMs: clock.now() })),
    line: { upload_mbps: 900, download_mbps: 950 },
    round_trip: { ms: 4, ...BERLIN },
  };
  await api.call(
    'POST /validator/{validator_hotkey}/executor-health-check',
    validators.HealthCheck,
    {
      params: { validator_hotkey: validator.hotkey },
      headers: await signedHeaders(scene),
      body: { ...market.healthCheck(node), report },
    },
  );
}

/** Two cards that NVLink connects. */
function withNvlink(inventory: Inventory): Inventory {
  const gpus = inventory.gpu.devices.map(({ uuid }, row) => ({
    uuid,
    numa_node: 0,
    cpus: null,
    links: row === 0 ? ['X', 'NV18'] : ['NV18', 'X'],
  }));
  return { ...inventory, gpu: { ...inventory.gpu, topology: { gpus } } };
}

/** Examines the renter's report and finds less memory than offered. */
export async function examineReports(scene: DayScene): Promise<void> {
  const { api, market } = scene;
  const { validator, clock } = market;
  const params = { validator_hotkey: validator.hotkey };
  const path = 'POST /validator/{validator_hotkey}/pod-reports';
  const headers = await signedHeaders(scene);
  const [report] = await api.call(path, validators.ReportsToExamine, { params, headers });
  if (report === undefined) throw new Error('there is no report');
  const { id: report_id, pod_id, executor_id } = report;
  const at = clock.now();
  const body = await signReport(
    {
      v: 1,
      report_id,
      pod_id,
      executor_id,
      validator: validator.hotkey,
      examined_at: at,
      outcome: 'confirmed',
      findings: [{ means: 'test_rental', at, step: 'inside', shortfall: '1 of 2 cards' }],
    },
    validator,
  );
  await api.call(`${path}/{id}/outcome`, ReportedOutcome, {
    params: { ...params, id: report_id },
    headers: await signedHeaders(scene),
    body,
  });
}

export async function postWeights({ api, market }: DayScene): Promise<void> {
  const { validator, clock } = market;
  const params = { validator_hotkey: validator.hotkey };
  const body = {
    netuid: 51,
    uids: [0, 7],
    weights: [65_535, 1_200],
    version_key: 19,
    wait_for_finalization: false,
    wait_for_inclusion: false,
    current_block: null,
    updated_at: `${naiveUtc(clock.now())}Z`,
  };
  await api.call('POST /validator/{validator_hotkey}/latest-set-weights', Success, {
    params,
    headers: { authorization: await signSetWeights(body, validator) },
    body,
  });
  const { LatestWeights, Digest } = validators;
  const operation = 'GET /validator/{validator_hotkey}/latest-set-weights';
  await api.call(operation, LatestWeights, { params });
  await api.call('GET /latest-set-weights', LatestWeights);
  await api.call('GET /updater/digest', Digest);
  await api.call('GET /watchtower/digest', Digest);
}
