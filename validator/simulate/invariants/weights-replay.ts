/** The newest weights follow from the stored evidence. */
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { lastEpoch } from '../../weights/epoch.store.ts';
import { replayEpoch } from '../../weights/replay.ts';
import type { Violations } from './violations.ts';

const MAX_SHOWN = 5;

/** Judges the documents of the newest epoch again, and computes its weights again. */
export async function checkWeights(
  store: EvidenceStore,
  { hotkey, violations }: { hotkey: Hotkey; violations: Violations },
): Promise<void> {
  const epoch = await lastEpoch(store);
  if (epoch === undefined) return;
  const { problems } = await replayEpoch(store, epoch, [{ hotkey }]);
  if (problems.length === 0) return;
  violations.report('weights', problems.slice(0, MAX_SHOWN).join('; '), []);
}
