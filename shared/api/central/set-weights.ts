/** The weights that a validator last set, and their signature. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { parseIsoTime } from '../../runtime/clock.ts';
import { pythonJson } from '../../signing/canonical-json.ts';
import { type Hotkey, publicKeyOf } from '../../signing/hotkey.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '../../signing/sr25519.ts';

const MAX_U16 = 65_535;
const MAX_WEIGHTS = MAX_U16 + 1;
const MICROSECONDS = 1_000;
/** Matches the microsecond digits of the fraction. */
const MICROSECOND_DIGITS = /\d{3}(?=Z$)/;

const U16 = z.int().min(0).max(MAX_U16);

/** UTC with microseconds: `2026-11-20T23:50:00.123456Z`. */
const MicrosecondTime = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/, 'Not a UTC time with microseconds')
  .refine((text) => parseIsoTime(text) !== null, 'Not a time');

/** All members are signed, so the schema rejects unknown ones. */
export const LatestSetWeightsRequest = z
  .strictObject(
    described(
      {
        netuid: z.int().min(0),
        uids: z.array(U16).max(MAX_WEIGHTS),
        weights: z.array(U16).max(MAX_WEIGHTS),
        version_key: z.int().min(0),
        wait_for_finalization: z.boolean(),
        wait_for_inclusion: z.boolean(),
        current_block: z.int().min(0).nullish(),
        updated_at: MicrosecondTime,
      },
      {
        netuid: 'Number of the subnet.',
        uids: 'Uids on the subnet.',
        weights: 'Weight of each uid in the same order, 0 to 65535.',
        version_key: "Version of the weights' format.",
        wait_for_finalization: 'As the validator set the weights; not used by the central API.',
        wait_for_inclusion: 'As the validator set the weights; not used by the central API.',
        current_block:
          'Number of the block at which the weights were set; null or absent if unknown.',
        updated_at: 'Time at which the weights were set: UTC with microseconds and `Z`.',
      },
    ),
  )
  .refine(({ uids, weights }) => uids.length === weights.length, {
    path: ['weights'],
    message: 'weights and uids must have the same length',
  })
  .meta({
    id: 'LatestSetWeightsRequest',
    example: {
      netuid: 51,
      uids: [0, 7],
      weights: [65535, 1200],
      version_key: 19,
      wait_for_finalization: false,
      wait_for_inclusion: false,
      current_block: null,
      updated_at: '2026-11-20T23:50:00.123456Z',
    },
  });
export type LatestSetWeights = z.output<typeof LatestSetWeightsRequest>;

export const SetWeightsAnswer = z.object(
  described({ success: z.literal(true) }, { success: 'Always true: errors have another body.' }),
);

/** The signed payload, and the validator that posted it. */
export const LatestSetWeightsResponse = z.object({
  ...LatestSetWeightsRequest.shape,
  ...described(
    { validator_key: z.string() },
    { validator_key: 'ss58 of the validator that posted the weights.' },
  ),
});
export type LatestSetWeightsResponse = z.output<typeof LatestSetWeightsResponse>;

/** Returns the signed text: all members as Python's json.dumps writes them. */
export function setWeightsText(payload: LatestSetWeights): string {
  return pythonJson(payload);
}

/** Returns the Authorization header: `0x` and hex, without a scheme. */
export async function signSetWeights(payload: LatestSetWeights, signer: Signer): Promise<string> {
  return toHex(await signer.sign(new TextEncoder().encode(setWeightsText(payload))));
}

/** Returns true if `authorization` is the hotkey's signature of exactly this payload. */
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

/** Returns `updated_at` in microseconds since the epoch. */
export function updatedAtMicros({ updated_at: text }: LatestSetWeights): number {
  const micros = Number(MICROSECOND_DIGITS.exec(text)?.[0] ?? 0);
  return (parseIsoTime(text) ?? 0) * MICROSECONDS + micros;
}
