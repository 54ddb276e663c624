/** Subjects of deposits, and the format of a feed of deposits. */
import { z } from 'zod';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { Uuid } from '../../platform/wire.ts';

/** Largest number of deposits in a feed. */
export const MAX_DEPOSITS = 20_000;

/** A node's id, or the hotkey of a provider whose nodes are all covered. */
export const CollateralSubject = z.union([Uuid, Hotkey]);

const Deposit = z.union([
  z.strictObject({ executor_id: Uuid }).transform((entry) => entry.executor_id),
  z.strictObject({ miner_hotkey: Hotkey }).transform((entry) => entry.miner_hotkey),
]);

/** `{"deposits": [{"executor_id": "…"}, {"miner_hotkey": "…"}]}`: all present deposits. */
export const CollateralFeedDocument = z
  .strictObject({ deposits: z.array(Deposit).max(MAX_DEPOSITS) })
  .transform(({ deposits }) => [...new Set<string>(deposits)].toSorted());
