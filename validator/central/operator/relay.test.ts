/**
 * The relay of the records of a real validator. The operator must receive the records that the validator stored and
 * signed.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SignedEvidence } from '#shared/api/central/evidence-records.ts';
import { RECORDS } from '#shared/api/central/validator-records.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { signatureFromHex, verifySr25519 } from '#shared/signing/sr25519.ts';
import { testSigner } from '../../../test/fakes/scenes/market-fixture.ts';
import {
  createValidatorScene,
  type ValidatorScene,
} from '../../../test/fakes/scenes/validator-scene.ts';
import { createGatewayAgents } from '../platform/adapters/gateway-agents.ts';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
let scene: ValidatorScene;
let headers: Record<string, string>;
beforeAll(async () => {
  scene = await createValidatorScene();
  const { market, validator } = scene;
  const { record } = createGatewayAgents({
    gatewayUrl: await validator.server.listen({ host: '127.0.0.1', port: 0 }),
    gatewayHotkey: market.validator.hotkey,
    signer: testSigner(5),
    clock: market.clock,
    random: systemRandom,
  });
  market.agents.record = record;
  const operator = await market.signUp();
  await market.setOperator(operator);
  headers = operator.session;
  await scene.cycle();
  scene.setSound(false);
  // A node that has passed fails only after two checks, a whole interval apart, have found its fault. An epoch has two
  // cycles.
  for (let cycle = 0; cycle < 5; cycle += 1) await scene.cycle();
});
afterAll(() => scene.close());

async function read(path: string) {
  const { status, body } = await scene.market.call('GET', `/operator/validator${path}`, {
    headers,
  });
  expect([path, status]).toEqual([path, 200]);
  return body;
}

/** Verifies a signature as a browser does, with values from the response only. */
function isSigned(signedAs: string, text: string, signature: string, by: string): boolean {
  const [bytes, key] = [signatureFromHex(signature), publicKeyOf(by)];
  const message = new TextEncoder().encode(signedAs + text);
  return bytes !== null && key !== null && verifySr25519(message, bytes, key);
}

it('lists cycles with their verdicts, and returns the evidence of each verdict', async () => {
  const { cycles, next } = await read('/cycles');
  expect(next).toBeNull();
  expect(cycles.length).toBeGreaterThanOrEqual(2);
  expect(cycles.at(-1)).toMatchObject({ number: 1, passed: 1, failed: 0, withheld: 0 });
  expect(cycles[0]).toMatchObject({ passed: 0, failed: 1 });
  const [newest] = cycles;
  const { verdicts } = await read(`/cycles/${newest.number}/verdicts`);
  expect(verdicts).toMatchObject([
    { executor_id: scene.node.id, verdict: 'failed', hotkey: scene.market.provider.hotkey },
  ]);
  const passed = await read(`/cycles/${newest.number}/verdicts?verdict=ok`);
  expect(passed.verdicts).toEqual([]);
  const { documents } = await read(`/executors/${scene.node.id}/evidence`);
  expect(documents.map(({ id }: { id: string }) => id)).toContain(verdicts[0].evidence_id);
});

it('returns cycles and documents in pages without a gap', async () => {
  const seen: number[] = [];
  let path = '/cycles?limit=1';
  for (;;) {
    const { cycles, next } = await read(path);
    seen.push(...cycles.map(({ number }: { number: number }) => number));
    if (next === null) break;
    path = `/cycles?limit=1&before=${next}`;
  }
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, at) => seen.length - at));
  const first = await read(`/executors/${scene.node.id}/evidence?limit=1`);
  const rest = await read(`/executors/${scene.node.id}/evidence?before=${first.next}`);
  expect([first.last_seq, first.documents[0].seq]).toEqual([first.last_seq, first.last_seq]);
  expect(rest.documents.at(-1)?.seq).toBe(first.first_seq);
});

it('relays signed evidence byte for byte', async () => {
  const rows = await scene.store.selectFrom('evidence').selectAll().execute();
  expect(rows.length).toBeGreaterThanOrEqual(2);
  for (const row of rows) {
    const evidence = await read(`/evidence/${row.id}`);
    expect(evidence.signature).toBe(row.signature);
    expect(sha256Hex(evidence.document)).toBe(row.id);
    const { validator } = JSON.parse(evidence.document) as { validator: string };
    expect(validator).toBe(scene.market.validator.hotkey);
    const { signed_as: signedAs, header, signature } = evidence;
    expect(isSigned(signedAs, header, signature, validator)).toBe(true);
    expect(isSigned(signedAs, `${header} `, signature, validator)).toBe(false);
    expect(JSON.parse(header)).toMatchObject({ id: row.id, seq: row.seq, verdict: row.verdict });
  }
});

it('accepts evidence of an older validator, which signs the document', () => {
  const older = {
    id: '0'.repeat(64),
    executor_id: UNKNOWN,
    seq: 1,
    finished_at: '2026-11-27T07:00:00',
    verdict: 'ok',
    signed_as: 'podwright-evidence-v1\n',
    document: '{}',
    signature: '0x00',
  };
  expect(SignedEvidence.parse(older)).toEqual({ ...older, header: null, dropped_at: null });
});

it('relays signed epochs with the texts whose hashes the claim contains', async () => {
  const { epochs } = await read('/epochs');
  const [newest] = epochs;
  const epoch = await read(`/epochs/${newest.number}`);
  const stored = await scene.store
    .selectFrom('epochs')
    .selectAll()
    .where('number', '=', newest.number)
    .executeTakeFirstOrThrow();
  expect([epoch.payload, epoch.policy]).toEqual([stored.payload_json, stored.policy_json]);
  const claim = JSON.parse(epoch.claim) as { payload_hash: string; policy_hash: string };
  expect(sha256Hex(epoch.payload)).toBe(claim.payload_hash);
  expect(sha256Hex(epoch.policy)).toBe(claim.policy_hash);
  expect(sha256Hex(epoch.claim)).toBe(epoch.id);
  const { signed_as: signedAs, claim: text, signature, validator } = epoch;
  expect(validator).toBe(scene.market.validator.hotkey);
  expect(isSigned(signedAs, text, signature, validator)).toBe(true);
});

it('returns the weights of an epoch with those of the previous epoch, and explains them', async () => {
  const { epochs } = await read('/epochs');
  const [{ number }] = epochs;
  const posted = JSON.parse((await read(`/epochs/${number}`)).payload);
  const weights = await read(`/epochs/${number}/weights`);
  const present = weights.weights.filter(({ weight }: { weight: number }) => weight > 0);
  expect(present.map(({ uid }: { uid: number }) => uid)).toEqual(posted.uids);
  expect(present.map(({ weight }: { weight: number }) => weight)).toEqual(posted.weights);
  if (number > 1) {
    const before = JSON.parse((await read(`/epochs/${number - 1}`)).payload);
    for (const { uid, previous_weight: was } of weights.weights) {
      expect(was).toBe(before.weights[before.uids.indexOf(uid)] ?? 0);
    }
  }
  const [{ uid }] = weights.weights;
  const later = await read(`/epochs/${number}/weights?after=${uid}`);
  expect(later.weights.every((each: { uid: number }) => each.uid > uid)).toBe(true);

  const why = await read(`/epochs/${number}/executors/${scene.node.id}`);
  expect(why).toMatchObject({
    epoch: number,
    executor_id: scene.node.id,
    is_complete: true,
    hotkey: scene.market.provider.hotkey,
    obstacles: ['its checks failed'],
  });
  expect(why.factors.map(({ factor }: { factor: string }) => factor)).toContain('eligible');
  expect(why.improvements[0]).toContain('Pass the checks');
});

it('returns the state of the validator and its releases', async () => {
  expect(await read('')).toMatchObject({
    hotkey: scene.market.validator.hotkey,
    cycle: expect.any(Number),
    epoch: expect.any(Number),
    messages_parked: 0,
  });
  expect(await read('/releases')).toEqual({ releases: [] });
});

it.each([
  ['/cycles/999999/verdicts', 404, 'not_found'],
  [`/evidence/${'0'.repeat(64)}`, 404, 'not_found'],
  ['/epochs/999999', 404, 'not_found'],
  ['/epochs/999999/weights', 404, 'not_found'],
  [`/epochs/1/executors/${UNKNOWN}`, 404, 'not_found'],
  ['/evidence/..%2F..%2Fhealthz', 422, 'validation_error'],
  ['/cycles?limit=101', 422, 'validation_error'],
  ['/cycles?before=0x10', 422, 'validation_error'],
  ['/cycles/1/verdicts?verdict=good', 422, 'validation_error'],
])('refuses %s', async (path, status, code) => {
  const answer = await scene.market.call('GET', `/operator/validator${path}`, { headers });
  expect([answer.status, answer.body.error.code]).toEqual([status, code]);
});

it('the validator returns the records to the central API only', async () => {
  const origin = scene.validator.server.listeningOrigin;
  expect((await fetch(`${origin}/v1/records/cycles`)).status).toBe(401);
  const stranger = createGatewayAgents({
    gatewayUrl: origin,
    gatewayHotkey: scene.market.validator.hotkey,
    signer: testSigner(9),
    clock: scene.market.clock,
    random: systemRandom,
  });
  await expect(stranger.record('/cycles', RECORDS.cycles.answer)).rejects.toMatchObject({
    code: 'upstream_unavailable',
  });
});
