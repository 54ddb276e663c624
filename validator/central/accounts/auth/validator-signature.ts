/**
 * Verifies requests signed by validators: headers `hotkey`, `timestamp` and `signature` over the timestamp, optionally
 * with the canonical signature headers over the whole request.
 */
import type { FastifyRequest } from 'fastify';
import { quotedValue } from '#shared/http/parameter-problem.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import {
  createReplayCache,
  createRequestVerifier,
  MAX_SKEW_MS,
  type PendingRequest,
} from '#shared/signing/request-verifier.ts';
import { SIGNATURE_HEADERS } from '#shared/signing/signed-request.ts';
import { signatureFromHex, toHex, type Verify, verifySr25519 } from '#shared/signing/sr25519.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { ValidatorIdentity } from '../../platform/identity.ts';
import { deleteExpiredUses, spendSignature } from './replay-guard.ts';

/** Largest accepted difference between the signed timestamp and this host's clock. */
const MAX_TIMESTAMP_SKEW_S = 300;
const NO_BODY = new Uint8Array();

export type ValidatorSignatures = ReturnType<typeof createValidatorSignatures>;

/** Creates the check of validators' signatures. Canonical signatures must name `audience`. */
export function createValidatorSignatures(deps: {
  db: Database;
  clock: Clock;
  log: Log;
  audience: string;
  validators: readonly Hotkey[];
  /** Default: sr25519. */
  verify?: Verify | undefined;
}) {
  const { db, clock, log, audience, validators, verify = verifySr25519 } = deps;
  const verifier = createRequestVerifier({
    clock,
    audience,
    keys: validators.map((hotkey) => ({ hotkey, roles: ['validator-control'] })),
    replay: createReplayCache(2 * MAX_SKEW_MS),
    verify,
    onFailure: (reason, signer) => log.warn({ reason, signer }, 'signed request rejected'),
  });
  /** Requests whose headers are verified and whose body is not read yet. */
  const pending = new WeakMap<FastifyRequest, PendingRequest>();

  /** Checks the canonical signature headers if the request has any of them. */
  function checkCanonical(request: FastifyRequest, hotkey: Hotkey): void {
    if (Object.values(SIGNATURE_HEADERS).every((name) => request.headers[name] === undefined)) {
      return;
    }
    const checked = verifier.checkHeaders(request, ['validator-control']);
    if (checked.signer !== hotkey) {
      throw new ApiError('unauthorized', 'The two signatures belong to different hotkeys');
    }
    pending.set(request, checked);
  }

  return {
    /**
     * Rejects with `unauthorized` for invalid headers and for a reused signature, and with 422 or 403 for a wrong
     * hotkey in the path. Signatures are randomized, so two signatures of a client differ even within the same second.
     */
    async identify(request: FastifyRequest): Promise<ValidatorIdentity> {
      const signed = signerOf(request, { validators, verify, nowMs: clock.now() });
      if (signed === null) {
        throw new ApiError('unauthorized', 'The request is not signed by a known validator', {
          hint: 'Send hotkey, timestamp (unix seconds) and signature (0x + hex) of a validator of this market.',
        });
      }
      const { hotkey } = signed;
      requireOwnPath(request, hotkey);
      checkCanonical(request, hotkey);
      if (!(await spendSignature(db, signed))) {
        throw new ApiError('unauthorized', 'This signature was used before', {
          hint: 'Create a new signature for each request.',
        });
      }
      return { kind: 'validator', hotkey, accountId: null };
    },

    /** Deletes records of signatures that are too old to be accepted. */
    sweep: (tx: Db) => deleteExpiredUses(tx, clock.now()),

    /**
     * Returns the validator named in the path, for a route whose body is signed in Authorization. The handler verifies
     * that signature, because it needs the body. Throws `unauthorized` without a well-formed signature, and 422 or 403
     * for a wrong hotkey in the path.
     */
    identifyByPath(request: FastifyRequest): ValidatorIdentity {
      const stated = (request.params as Record<string, string | undefined>)['validator_hotkey'];
      const signature = signatureFromHex(request.headers.authorization?.toLowerCase() ?? '');
      const hotkey = validators.find((validator) => validator === stated);
      if (signature !== null && publicKeyOf(stated ?? '') === null) {
        throw badPath(stated);
      }
      if (signature === null || hotkey === undefined) {
        throw new ApiError('unauthorized', 'The body is not signed by a known validator', {
          hint: 'Send Authorization: 0x + hex of the signature over the body, by a validator of this market.',
        });
      }
      if (request.headers['hotkey'] !== undefined && request.headers['hotkey'] !== hotkey) {
        throw new ApiError('forbidden', 'The path names another validator than the signature');
      }
      checkCanonical(request, hotkey);
      return { kind: 'validator', hotkey, accountId: null };
    },

    /** Completes the check of a canonical signature once the body is read. */
    async verifyBody(request: FastifyRequest): Promise<void> {
      const checked = pending.get(request);
      if (checked !== undefined) verifier.checkBody(checked, request.rawBody ?? NO_BODY);
    },
  };
}

type Signed = { hotkey: Hotkey; signature: string; expiresAtMs: number };

/** Returns the signer of a valid and recent timestamp; null if the signature is invalid. */
function signerOf(
  request: FastifyRequest,
  { validators, verify, nowMs }: { validators: readonly Hotkey[]; verify: Verify; nowMs: number },
): Signed | null {
  const { hotkey, timestamp, signature } = request.headers;
  const known = validators.find((validator) => validator === hotkey);
  if (known === undefined || typeof timestamp !== 'string' || typeof signature !== 'string') {
    return null;
  }
  if (!/^\d{1,12}$/.test(timestamp)) return null;
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > MAX_TIMESTAMP_SKEW_S) return null;
  const publicKey = publicKeyOf(known);
  const bytes = signatureFromHex(signature.toLowerCase());
  if (publicKey === null || bytes === null) return null;
  if (!verify(new TextEncoder().encode(timestamp), bytes, publicKey)) return null;
  const expiresAtMs = (Number(timestamp) + MAX_TIMESTAMP_SKEW_S + 1) * 1_000;
  return { hotkey: known, signature: toHex(bytes), expiresAtMs };
}

/** Throws 403 if the path names another validator, and 422 if the path names no valid hotkey. */
export function requireOwnPath(request: FastifyRequest, hotkey: Hotkey): void {
  const stated = (request.params as Record<string, string | undefined>)['validator_hotkey'];
  if (stated === undefined || stated === hotkey) return;
  if (publicKeyOf(stated) !== null) {
    throw new ApiError('forbidden', 'The path names another validator than the credential');
  }
  throw badPath(stated);
}

function badPath(stated: string | undefined): ApiError {
  const problem = `${quotedValue(stated ?? '')} is not an ss58 address with prefix 42`;
  return invalidField('path.validator_hotkey', problem);
}
