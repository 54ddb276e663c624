/**
 * Composes the descriptions of an operation and of its parameters from the texts and the configuration of its route.
 * Pure.
 */
import { z } from 'zod';
import { ERROR_TABLE, type ErrorCode } from '#shared/runtime/errors.ts';
import type { AuthRule } from '../identity.ts';

declare module 'fastify' {
  interface FastifySchema {
    /** Effect of a repeated request. Required for writes that do not run once per Idempotency-Key. */
    retry?: string;
    /** Errors that matter to callers of this route, with their causes. */
    errors?: Partial<Record<ErrorCode, string>>;
    /** The texts of `errors` by status, set when the description is generated. */
    'x-errors'?: Record<string, string>;
  }
}

/** Properties of a route that its description depends on. */
export type OperationSource = {
  method: string;
  auth: AuthRule | undefined;
  /** True if the route runs once per Idempotency-Key. */
  isOnce: boolean;
  description: string | undefined;
  retry: string | undefined;
};

const CALLERS: Record<AuthRule, string> = {
  none: 'Anyone; no credential is required.',
  user: 'A renter, with an API key or a session token.',
  session: 'A renter, with a session token. An API key is rejected with 403 `forbidden`.',
  operator:
    "An account with the operator's role, with an API key or a session token. Other accounts are rejected with 403 `forbidden`.",
  portal: 'A provider, with a portal session or a provider token (`lpk_…`).',
  validator: 'A validator, with signed headers; the hotkey of the path must belong to the signer.',
  'validator-or-account':
    "A validator with signed headers, or a session of the validator's account.",
  weights: 'A validator, with a signature over the body in `Authorization`.',
};

const SAFE_READ = 'Safe: the request changes nothing.';
const SAFE_WITH_KEY =
  'Safe with an `Idempotency-Key`: the repeated request receives the first response and has no second effect. Without the key, the repeated request is a new request.';

/**
 * Returns the description in Markdown: the text of the route, then the required credential and whether a retry is safe.
 */
export function descriptionOf(source: OperationSource): string {
  const { method, auth = 'none', isOnce, description = '', retry } = source;
  const byDefault = method === 'GET' ? SAFE_READ : '';
  const retries = [isOnce ? SAFE_WITH_KEY : '', retry ?? (isOnce ? '' : byDefault)];
  const parts = [
    description,
    `**Caller:** ${CALLERS[auth]}`,
    `**Retry:** ${retries.filter((text) => text !== '').join(' ')}`,
  ];
  return parts.filter((part) => !/^(?:\*\*\w+:\*\* )?$/.test(part)).join('\n\n');
}

/** Returns the descriptions of error responses by HTTP status, with each code and its causes. */
export function errorTexts(errors: Partial<Record<ErrorCode, string>>): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [code, when] of Object.entries(errors)) {
    const { status } = ERROR_TABLE[code as ErrorCode];
    const text = `\`${code}\`: ${when}`;
    texts[status] = texts[status] === undefined ? text : `${texts[status]}\n\n${text}`;
  }
  return texts;
}

/** Descriptions of path parameters, by the segment before them. */
const PARAMETER_TEXTS: Readonly<Record<string, string>> = {
  accounts: 'Id of the account.',
  'backup-configs': 'Id of the backup schedule.',
  'backup-logs': 'Id of the backup.',
  billing: "ss58 of the provider's hotkey.",
  bookmark: 'Id of the node.',
  bookmarks: 'Id of the node.',
  cycles: 'Number of the cycle.',
  deliveries: 'Id of the delivery.',
  'docker-credentials': 'Id of the registry login.',
  epochs: 'Number of the epoch.',
  executors: 'Id of the node.',
  keys: 'Id of the API key.',
  'machine-requests': 'Id of the machine request.',
  pod: 'Id of the pod.',
  'pod-reports': 'Id of the report.',
  pods: 'Id of the pod.',
  'restore-logs': 'Id of the restore.',
  secrets: 'Id of the secret.',
  sleep: 'Seconds to wait before the response, 0 to 30.',
  'ssh-keys': 'Id of the SSH key.',
  templates: 'Id of the template.',
  tokens: 'Id of the provider token.',
  validator: "ss58 of the validator's hotkey.",
  volumes: 'Id of the volume.',
  webhooks: 'Id of the webhook.',
};

const Params = z.looseObject({ properties: z.record(z.string(), z.looseObject({})) });

/** Adds the descriptions to the JSON schema of a route's path parameters. A parameter's own description is retained. */
export function withPathTexts(described: unknown, url: string): unknown {
  const parsed = Params.safeParse(described);
  if (!parsed.success) return described;
  const segments = url.split('/');
  const entries = Object.entries(parsed.data.properties).map(([name, property]) => {
    const text = PARAMETER_TEXTS[segments[segments.indexOf(`:${name}`) - 1] ?? ''];
    return [name, text === undefined ? property : { description: text, ...property }];
  });
  return { ...parsed.data, properties: Object.fromEntries(entries) };
}
