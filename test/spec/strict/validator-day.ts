/** The validator's day: it reads the nodes to check, reports verdicts and posts weights. */
import { signSetWeights } from '#shared/api/central/set-weights.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import { testInventory } from '../../fixtures/host-inventory.ts';
import type { DayScene } from './day-scene.ts';
import { Success } from './types.ts';
import * as validators from './validators.ts';

/** Checks a node that was added, and reports that it passed. */
export async function checkNode(
  { api, market }: DayScene,
  node: { id: string; port: number },
): Promise<void> {
  const { validator, clock } = market;
  const params = { validator_hotkey: validator.hotkey };
  // A signature of the same second would be a replay.
  const headers = async () => {
    await clock.advance(1_000);
    const timestamp = String(Math.floor(clock.now() / 1_000));
    const signature = toHex(validator.sign(new TextEncoder().encode(timestamp)));
    return { hotkey: validator.hotkey, timestamp, signature };
  };
  await api.call('POST /validator/{validator_hotkey}/executors', validators.NodesToCheck, {
    params,
    headers: await headers(),
  });
  const report = {
    verdict: 'verified',
    checked_at_ms: clock.now(),
    checks: [],
    inventory: testInventory(node.id, { collectedMs: clock.now() }),
    line: { upload_mbps: 900, download_mbps: 950 },
  };
  await api.call(
    'POST /validator/{validator_hotkey}/executor-health-check',
    validators.HealthCheck,
    {
      params,
      headers: await headers(),
      body: { ...market.healthCheck(node), report },
    },
  );
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
