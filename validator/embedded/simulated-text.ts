/** Block that `npm start -- --simulate` prints once everything answers, and the content of its `demo.json`. */
import type { DemoFile } from './demo-file.ts';
import type { Home } from './home.ts';
import type { StartOptions } from './options.ts';

/** The parts of `demo.json` that a simulated marketplace has, by the same names. */
export type SimulatedDemo = Pick<
  DemoFile,
  | 'base_url'
  | 'portal_url'
  | 'console_url'
  | 'provider_console_url'
  | 'account'
  | 'templates'
  | 'pids'
> & { provider: Pick<DemoFile['provider'], 'hotkey'> };

export function simulatedReadyText(
  demo: SimulatedDemo,
  { home, options }: { home: Home; options: StartOptions },
): string {
  const { base_url: base } = demo;
  const { providers, renters, seed } = options;
  return `
Podwright is ready, with ${providers} providers and ${renters} renters of seed ${seed}, and a paused clock.
  Hosts are models: pods run and are charged, but have no SSH, no terminal and no files. All data ends with this process.

  console    ${demo.console_url}
  provider   ${demo.provider_console_url}
  API        ${base}
  reference  ${new URL('/docs', base)}
  portal     ${demo.portal_url}
  details    ${home.demoFile}

Advance the clock in the console, or in a second terminal (with curl and jq):

${tryCommands(demo)}
Ctrl-C stops everything.
`;
}

/** Commands that rent a pod, let an hour pass, and let the host of the pod die. */
function tryCommands({ base_url: base, account, templates }: SimulatedDemo): string {
  const commands = [
    `API=${base}`,
    `KEY=${account.api_key}`,
    `TEMPLATE=${templates[0]?.id ?? ''}`,
    `api() { curl -s -H "X-API-Key: $KEY" -H 'Content-Type: application/json' "$@"; }`,
    'advance() { # seconds',
    `  api $API/_local/clock -d '{"action":"advance","seconds":'$1'}' >/dev/null`,
    '  while [ "$(api $API/_local/clock | jq -r .status)" = advancing ]; do sleep 0.2; done',
    '}',
    'advance 86400',
    "NODE=$(api $API/executors | jq -r '.[0].id')",
    `RENTAL='{"pod_name":"first","template_id":"'$TEMPLATE'"}'`,
    'POD=$(api $API/executors/$NODE/rent -d "$RENTAL" | jq -r .id)',
    'advance 3600',
    `api $API/pods/$POD | jq '{status, price_per_hour}'`,
    `FAULT='{"kind":"dies","lasts_minutes":300,"executor_id":"'$NODE'"}'`,
    'api $API/_local/faults -d "$FAULT" | jq .faults',
    'advance 3600',
    `api $API/pods/$POD | jq '{status, reason_code, message}'`,
  ];
  return commands.map((command) => `  ${command}\n`).join('');
}
