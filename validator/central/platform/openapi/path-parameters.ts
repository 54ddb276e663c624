/** Descriptions of path parameters, by the segment before them. Pure. */
import { z } from 'zod';

const TEXTS: Readonly<Record<string, string>> = {
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
  pods: 'Id of the pod.',
  'restore-logs': 'Id of the restore.',
  secrets: 'Id of the secret.',
  sleep: 'Seconds to wait before the answer, 0 to 30.',
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
    const text = TEXTS[segments[segments.indexOf(`:${name}`) - 1] ?? ''];
    return [name, text === undefined ? property : { description: text, ...property }];
  });
  return { ...parsed.data, properties: Object.fromEntries(entries) };
}
