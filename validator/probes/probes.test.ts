/** Hidden rentals as part of the validator. */
import { expect, it } from 'vitest';
import { createValidatorScene } from '../../test/fakes/scenes/validator-scene.ts';
import { findEvidence } from '../evidence/evidence.store.ts';
import { insertWaiting } from './hidden-rental.store.ts';

it('reports in readiness that no hidden rentals are made without accounts', async () => {
  const scene = await createValidatorScene();
  try {
    const { statusCode, json } = await scene.validator.server.inject('/readyz');
    const { hidden_rentals: component } = json().components;
    expect([statusCode, component]).toEqual([
      200,
      { ok: true, message: 'off: no accounts to rent with' },
    ]);
  } finally {
    await scene.close();
  }
});

it('fails an executor in the inspection after a hidden rental below the offer, with the facts as evidence', async () => {
  const scene = await createValidatorScene();
  try {
    const { id } = scene.node;
    const nowMs = scene.market.clock.now();
    const mismatch = { fact: 'cores', offered: '32 cores', seen: ['limit 1', 'limit 1'] };
    const facts = { mismatches: [mismatch], seen_once: [], down_kbit: null, ended_ms: nowMs };
    await insertWaiting(scene.store, { id: 'rental', executorId: id, dueMs: nowMs });
    const result = { started_ms: nowMs, result_json: JSON.stringify(facts) };
    await scene.store.updateTable('hidden_rentals').set(result).execute();
    const lastDocument = async () => {
      await scene.cycle();
      const newest = scene.store
        .selectFrom('evidence')
        .select('id')
        .orderBy('seq', 'desc')
        .limit(1);
      const { id: evidenceId } = await newest.executeTakeFirstOrThrow();
      return (await findEvidence(scene.store, evidenceId))?.document ?? '';
    };
    expect(await lastDocument()).not.toContain('RENTAL_BELOW_OFFER');
    await scene.store.updateTable('hidden_rentals').set({ ended_ms: nowMs }).execute();
    const document = JSON.parse(await lastDocument());
    expect(document.verdict).toBe('failed');
    expect(JSON.stringify(document)).toContain('cores: limit 1, then limit 1 of 32 cores');
  } finally {
    await scene.close();
  }
});
