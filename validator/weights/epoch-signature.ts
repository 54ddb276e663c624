/** The validator's signature under an epoch: that these are its weights, of this input, and nobody else's rows (validator reference 7). */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '#shared/signing/sr25519.ts';
import type { EpochRow } from '../store/ledger.tables.ts';

/** So that a signature can mean nothing else. */
const SIGNED_AS = 'podwright-epoch-v1\n';

/** Where it stands in the chain. */
export type EpochLink = Pick<EpochRow, 'previous' | 'first_kept'>;
/** As it is computed; what becomes of it at the central API is not signed. */
export type UnsignedEpoch = Omit<EpochRow, 'signature'>;

/** The epoch as `signer` vouches for it. */
export async function signEpoch(row: UnsignedEpoch, signer: Signer): Promise<EpochRow> {
  return { ...row, signature: toHex(await signer.sign(messageOf(row))) };
}

/** What is wrong with the signature of an epoch of that validator's; null where nothing is. */
export function signatureProblem(row: SignedEpoch, validator: Hotkey): string | null {
  if (row.signature === null) return 'it is not signed: it is of an older program, or of nobody';
  const [signature, key] = [signatureFromHex(row.signature), publicKeyOf(validator)];
  const isGood =
    signature !== null && key !== null && verifySr25519(messageOf(row), signature, key);
  return isGood ? null : `its signature is not that of ${validator}`;
}

/** SHA-256 of what is signed of it, hex: by this the next one names it. */
export const epochIdOf = (row: SignedColumns): string => sha256Hex(claimOf(row));

const messageOf = (row: SignedColumns): Uint8Array =>
  new TextEncoder().encode(SIGNED_AS + claimOf(row));

type SignedColumns = Omit<UnsignedEpoch, 'state' | 'input_json' | 'policy_json'>;
export type SignedEpoch = SignedColumns & Pick<EpochRow, 'signature'>;

/** By the hashes of all that it was made of, the cycles and who was registered included. Of a chain only where it is of one. */
function claimOf(row: SignedColumns): string {
  const { number, computed_ms, input_hash, policy_hash, result_hash, payload_json } = row;
  const { previous, first_kept } = row;
  return canonicalJson({
    ...{ number, computed_ms, input_hash, policy_hash, result_hash },
    payload_hash: sha256Hex(payload_json),
    ...(first_kept === null ? {} : { previous, first_kept }),
  });
}
