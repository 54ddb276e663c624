/** The requests of a rental as shell commands. The API key is `$KEY`. Pure. */
import type { CreateTemplate } from '../api/api.gen.ts';

const TEMPLATE_VARIABLE = '$TEMPLATE';

/** Place of a template id that an earlier command stores in `$TEMPLATE`. */
export const TEMPLATE_PLACE = '@template@';

type Command = { origin: string; path: string; body: object };

/** A `curl` command; its Idempotency-Key makes a repeat safe. */
export function curlOf({ origin, path, body }: Command, idempotencyKey?: string): string {
  return [
    `curl --fail-with-body ${quote(`${origin}/api${path}`)}`,
    `-H "X-API-Key: $KEY"`,
    `-H 'Content-Type: application/json'`,
    ...(idempotencyKey === undefined ? [] : [`-H ${quote(`Idempotency-Key: ${idempotencyKey}`)}`]),
    `-d ${quoteBody(body)}`,
  ].join(' \\\n  ');
}

/** The command that creates the one-time template, and stores its id in `$TEMPLATE`. */
export function templateCommand(origin: string, body: CreateTemplate): string {
  return `TEMPLATE=$(${curlOf({ origin, path: '/templates', body })} | jq -r .id)`;
}

/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function quoteBody(body: object): string {
  return quote(JSON.stringify(body)).replaceAll(TEMPLATE_PLACE, `'"${TEMPLATE_VARIABLE}"'`);
}
