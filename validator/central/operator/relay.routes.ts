/** Relays the records of the validator to operators: cycles, evidence, epochs, releases. */
import type { z } from 'zod';
import { RECORDS } from '#shared/api/central/validator-records.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Agents } from '../platform/ports.ts';

type Relayed = {
  record: { path: string; params: z.ZodType; query: z.ZodType; answer: z.ZodType };
  summary: string;
  description: string;
  /** Cause of a 404 of the validator; absent for a record that always exists. */
  missing?: string;
};

const RELAYED: readonly Relayed[] = [
  {
    record: RECORDS.status,
    summary: "Read the validator's state",
    description:
      'Returns the newest cycle and epoch of the validator, and the documents that wait for delivery.',
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
    missing: 'the validator does not have this cycle, or has deleted it',
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
      'Returns one document and its signature unchanged, so that the caller can verify it: sr25519 by `validator` over `signed_as` and `header`, or over `signed_as` and `document` if `header` is null. Documents of passed checks are dropped after some time; their signed headers stay.',
    missing: 'the validator does not have this document, or has deleted it',
  },
  {
    record: RECORDS.epochs,
    summary: 'List epochs',
    description:
      'Returns the epochs of the validator. Each epoch contains the id of the previous epoch.',
  },
  {
    record: RECORDS.epoch,
    summary: 'Read a signed epoch',
    description:
      'Returns the signed claim of an epoch, and the texts whose hashes it contains: the posted weights and the policy.',
    missing: 'the validator does not have this epoch, or has deleted it',
  },
  {
    record: RECORDS.weights,
    summary: 'List the weights of an epoch',
    description: 'Returns the weights by uid, with the weights of the previous epoch.',
    missing: 'the validator does not have this epoch any more',
  },
  {
    record: RECORDS.explanation,
    summary: 'Explain the weight of a node',
    description:
      'Returns the points, factors and obstacles from which the weight of a node in an epoch results, and the changes that would raise the weight. The validator computes the weights of the epoch again. For a large fleet this may take longer than the request; then repeat the request.',
    missing: 'the validator does not have this epoch, or the node was not measured in it',
  },
  {
    record: RECORDS.releases,
    summary: 'List releases of the agent',
    description: 'Returns the releases that the validator signs, newest first, with their rollout.',
  },
];

/** Registers a route for each record. Signatures and signed texts are relayed unchanged. */
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
              'the validator does not respond within 8 seconds, or its response has another form',
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

/** Returns the path and query of a record at the validator's gateway. The values are already validated. */
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
