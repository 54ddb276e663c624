/** Routes below /operator for waiting work, corrected differences, and proofs of the ledger. */
import type { HttpServer } from '#shared/http/server.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { LedgerProofs } from '../money/ledger/ledger-proof.service.ts';
import type { LedgerProof as StoredProof } from '../platform/database/tables.ts';
import { userOf } from '../platform/identity.ts';
import type { LedgerAudit } from '../platform/ports.ts';
import { DriftList, DriftQuery, LedgerProof, Queues } from './queue.schemas.ts';
import type { createQueues } from './queue.service.ts';

const tags = ['Operator'];
const config = { auth: 'operator' } as const;
const forbidden = "the account does not have the operator's role";

export function registerQueues(api: HttpServer, queues: ReturnType<typeof createQueues>): void {
  api.get(
    '/operator/queues',
    {
      config,
      schema: {
        tags,
        summary: 'Read the ages of queues',
        description: 'Returns waiting work by kind, with the age of the oldest entry.',
        errors: { forbidden },
        response: { 200: Queues },
      },
    },
    () => queues.queues(),
  );
  api.get(
    '/operator/drift',
    {
      config,
      schema: {
        tags,
        summary: 'List corrected differences of nodes',
        description:
          'Returns differences between the pods on a node and the pods in the database that the sync found.',
        errors: { forbidden },
        querystring: DriftQuery,
        response: { 200: DriftList },
      },
    },
    ({ query }) => queues.drift(query),
  );
}

export function registerLedgerProof(api: HttpServer, proofs: LedgerProofs): void {
  api.get(
    '/operator/ledger-proof',
    {
      config,
      schema: {
        tags,
        summary: 'Read the newest proof of the ledger',
        description: 'Returns the newest audit of all transfers, which may still be running.',
        errors: { forbidden },
        response: { 200: LedgerProof },
      },
    },
    async () => answerOf(await proofs.newest()),
  );
  api.post(
    '/operator/ledger-proof',
    {
      config,
      schema: {
        tags,
        summary: 'Prove the ledger',
        description:
          'Starts an audit that recomputes every balance from the journal and checks the invariants. The audit changes no balance. Read the result with GET.',
        errors: { forbidden, conflict: 'a proof is already running' },
        retry: 'Safe: a repeat starts another audit, or returns 409 while an audit runs.',
        response: { 200: LedgerProof },
      },
    },
    async (request) => answerOf(await proofs.begin(userOf(request).accountId)),
  );
}

const NO_RESULT = {
  holds: null,
  transfers: null,
  accounts: null,
  open_holds: null,
  balance_hash: null,
  findings: [],
  more_findings: 0,
};

function answerOf(row: StoredProof | null): LedgerProof {
  if (row === null) {
    const nothing = { operator: null, started_at: null, finished_at: null, error: null };
    return { state: 'none', ...nothing, ...NO_RESULT };
  }
  const { state, operator, error, finished_at: endedMs } = row;
  return {
    state,
    operator,
    error,
    started_at: naiveUtc(row.started_at),
    finished_at: endedMs === null ? null : naiveUtc(endedMs),
    ...(row.result_json === null ? NO_RESULT : resultIn(row.result_json)),
  };
}

function resultIn(json: string) {
  // The stored text is the JSON of a LedgerAudit.
  const { findings, more, hash, openHolds, ...counts } = JSON.parse(json) as LedgerAudit;
  return {
    ...counts,
    holds: findings.length + more === 0,
    open_holds: openHolds,
    balance_hash: hash,
    findings,
    more_findings: more,
  };
}
