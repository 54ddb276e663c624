/** The weights that a validator set last, and the text it signs them over (contract 11, validator reference 8.3). */
import { z } from 'zod';
import { parseIsoTime } from '../../runtime/clock.ts';
import { pythonJson } from '../../signing/canonical-json.ts';
import { type Hotkey, publicKeyOf } from '../../signing/hotkey.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '../../signing/sr25519.ts';

const MAX_U16 = 65_535;
const MAX_WEIGHTS = MAX_U16 + 1;
const MICROSECONDS = 1_000;
/** Of the six digits of a second's fraction, those beyond milliseconds. */
const MICROSECOND_DIGITS = /\d{3}(?=Z$)/;

const U16 = z.int().min(0).max(MAX_U16);

/** UTC with microseconds: `2026-11-20T23:50:00.123456Z`. */
const MicrosecondTime = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/, 'Not a UTC time with microseconds')
  .refine((text) => parseIsoTime(text) !== null, 'Not a time');

/** Exactly these members: all of them are signed. */
export const LatestSetWeightsRequest = z
  .strictObject({
    netuid: z.int().min(0),
    uids: z.array(U16).max(MAX_WEIGHTS),
    weights: z.array(U16).max(MAX_WEIGHTS),
    version_key: z.int().min(0),
    wait_for_finalization: z.boolean(),
    wait_for_inclusion: z.boolean(),
    current_block: z.int().min(0).nullish(),
    updated_at: MicrosecondTime,
  })
  .refine(({ uids, weights }) => uids.length === weights.length, {
    path: ['weights'],
    message: 'There are not as many weights as uids',
  })
  .meta({ id: 'LatestSetWeightsRequest' });
export type LatestSetWeights = z.output<typeof LatestSetWeightsRequest>;

export const SetWeightsAnswer = z.object({ success: z.literal(true) });

/** The payload as it was posted, and whose it is. */
export const LatestSetWeightsResponse = z.object({
  ...LatestSetWeightsRequest.shape,
  validator_key: z.string(),
});
export type LatestSetWeightsResponse = z.output<typeof LatestSetWeightsResponse>;

/** What is signed: all members, in Python's spelling. */
export function setWeightsText(payload: LatestSetWeights): string {
  return pythonJson(payload);
}

/** The Authorization header: `0x` + hex, no word before it. */
export async function signSetWeights(payload: LatestSetWeights, signer: Signer): Promise<string> {
  return toHex(await signer.sign(new TextEncoder().encode(setWeightsText(payload))));
}

/** Whether `authorization` is the hotkey's signature of exactly this payload. */
export function isSetWeightsSignature(
  authorization: string | undefined,
  payload: LatestSetWeights,
  hotkey: Hotkey,
): boolean {
  const signature = signatureFromHex(authorization?.toLowerCase() ?? '');
  const publicKey = publicKeyOf(hotkey);
  if (signature === null || publicKey === null) return false;
  const text = new TextEncoder().encode(setWeightsText(payload));
  return verifySr25519(text, signature, publicKey);
}

/** Microseconds since the epoch of `updated_at`. */
export function updatedAtMicros({ updated_at: text }: LatestSetWeights): number {
  const micros = Number(MICROSECOND_DIGITS.exec(text)?.[0] ?? 0);
  return (parseIsoTime(text) ?? 0) * MICROSECONDS + micros;
}
