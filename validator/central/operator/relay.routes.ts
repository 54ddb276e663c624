/** Relays the records of the validator to operators: cycles, evidence, epochs, releases. */
import type { z } from 'zod';
import { RECORDS } from '#shared/api/central/validator-records.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Agents } from '../platform/ports.ts';

type Relayed = {
  record: { path: string; params: z.ZodType; query: z.ZodType; answer: z.ZodType };
  summary: string;
  description: string;
  /** When the validator answers 404; absent for a record that always exists. */
  missing?: string;
};

const RELAYED: readonly Relayed[] = [
  {
    record: RECORDS.status,
    summary: "Read the validator's state",
    description:
      'Returns the newest cycle and epoch of the validator, and what waits for delivery.',
  },
  {
    record: RECORDS.cycles,
    summary: 'List cycles',
    description: 'Returns the cycles of the validator with the number of nodes by verdict.',
  },
  {
    record: RECORDS.verdicts,
    summary: 'List the verdicts of a cycle',
    description: 'Returns the verdict on each node in one cycle, with the id of its evidence.',
    missing: 'the validator does not have this cycle any more',
  },
  {
    record: RECORDS.documents,
    summary: 'List the evidence of a node',
    description: 'Returns the documents of one node without their texts.',
  },
  {
    record: RECORDS.evidence,
    summary: 'Read a signed document of evidence',
    description:
      "Returns one document and its signature unchanged, so that the caller can verify it: sr25519 by the document's `validator` over `signed_as` and `document`.",
    missing: 'the validator does not have this document any more',
  },
  {
    record: RECORDS.epochs,
    summary: 'List epochs',
    description: 'Returns the epochs of the validator. Each names the id of the one before.',
  },
  {
    record: RECORDS.epoch,
    summary: 'Read a signed epoch',
    description:
      'Returns the signed claim of an epoch, and the texts whose hashes it contains: the posted weights and the policy.',
    missing: 'the validator does not have this epoch any more',
  },
  {
    record: RECORDS.weights,
    summary: 'List the weights of an epoch',
    description: 'Returns the weights by uid, with those of the epoch before.',
    missing: 'the validator does not have this epoch any more',
  },
  {
    record: RECORDS.explanation,
    summary: 'Explain the weight of a node',
    description:
      'Returns why a node has its weight in an epoch: points, factors, obstacles, and what would raise it. The validator weighs the epoch again, which may take longer than this request for a large fleet; repeat it then.',
    missing: 'the validator does not have this epoch, or the node was not measured in it',
  },
  {
    record: RECORDS.releases,
    summary: 'List releases of the agent',
    description: 'Returns the releases that the validator signs, newest first, with their rollout.',
  },
];

/** Registers a route for each record. Signatures and signed texts pass unchanged. */
export function registerRelay(api: HttpServer, agents: Pick<Agents, 'record'>): void {
  for (const { record, summary, description, missing } of RELAYED) {
    const { path, params, query, answer } = record;
    api.get(
      `/operator/validator${path}`,
      {
        config: { auth: 'operator' },
        schema: {
          tags: ['Operator'],
          summary,
          description,
          errors: {
            forbidden: "the account does not have the operator's role",
            ...(missing === undefined ? {} : { not_found: missing }),
            upstream_unavailable:
              'the validator does not answer within 8 seconds, or its answer has another form',
          },
          params,
          querystring: query,
          response: { 200: answer },
        },
      },
      (request) => agents.record(pathOf(path, request.params, request.query), answer),
    );
  }
}

/** Path and query of a record for the validator's gateway. The values were validated. */
function pathOf(path: string, params: unknown, query: unknown): string {
  const values = new Map(Object.entries(params as object).map(([name, it]) => [name, String(it)]));
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(values.get(name) ?? ''),
  );
  const sent = Object.entries(query as object).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return sent.length === 0 ? filled : `${filled}?${new URLSearchParams(sent)}`;
}
