/** `demo.json` in the home folder: everything that a script needs to use the local marketplace. */
import { type Home, writePrivateFile } from './home.ts';
import type { MetricsUrl } from './metrics-listeners.ts';

export type DemoFile = {
  base_url: string;
  portal_url: string;
  /** Link that logs a browser in to the demo account: once, within an hour after the start. */
  console_url: string;
  /** Link that logs a browser in to the pages of the demo provider: once, within an hour after the start. */
  provider_console_url: string;
  validator_url: string;
  /** Signer of evidence, and the key whose commands the gateway relays. */
  validator: { hotkey: string };
  central: { hotkey: string };
  account: { email: string; password: string; api_key: string };
  provider: { hotkey: string; seed_file: string };
  executors: { id: string; agent_url: string; pid: number | null }[];
  templates: { id: string; name: string }[];
  ssh: { private_key_file: string };
  /** Metrics of every process; they do not change with a restart of an agent. */
  metrics_urls: MetricsUrl[];
  pids: Record<string, number | null>;
};

/** Writes the file atomically with mode 0600. */
export function writeDemoFile(home: Home, demo: DemoFile): void {
  writePrivateFile(home.demoFile, `${JSON.stringify(demo, null, 2)}\n`);
}

/** Block that `npm start` prints once everything answers. Every link responds with 200 to a browser. */
export function readyText(demo: DemoFile, home: Home, simulated: boolean): string {
  const { base_url: base } = demo;
  const gpus = simulated ? '\n  GPUs are simulated: pods run, but nothing computes on a GPU.' : '';
  return `
Podwright is ready.${gpus}

  console    ${demo.console_url}
  provider   ${demo.provider_console_url}
  API        ${base}
  reference  ${new URL('/docs', base)}
  portal     ${demo.portal_url}
  validator  ${demo.validator_url}/version
  details    ${home.demoFile}

Try this in a second terminal (with curl and jq):

${tryCommands(demo)}
Ctrl-C stops everything.
`;
}

/** Commands that rent a pod, log in to it and remove it. */
function tryCommands({ base_url: base, account, executors, templates, ssh }: DemoFile): string {
  const commands = [
    `API=${base}`,
    `KEY=${account.api_key}`,
    `NODE=${executors[0]?.id ?? ''}`,
    `TEMPLATE=${templates[0]?.id ?? ''}`,
    `api() { curl -s -H "X-API-Key: $KEY" -H 'Content-Type: application/json' "$@"; }`,
    `api $API/executors | jq '.[] | {id, machine_name, price_per_hour}'`,
    `RENTAL='{"pod_name":"first","template_id":"'$TEMPLATE'"}'`,
    'POD=$(api $API/executors/$NODE/rent -d "$RENTAL" | jq -r .id)',
    'until_running() { # at most five minutes; prints why the pod does not run',
    '  for _ in $(seq 300); do',
    "    case $(api $API/pods/$1 | jq -r .status) in RUNNING) return ;; '' | null | *FAILED) break ;; esac",
    '    sleep 1',
    '  done',
    "  api $API/pods/$1 | jq '{status, reason_code, message}'; false",
    '}',
    'until_running $POD',
    'SSH="$(api $API/pods/$POD | jq -r .ssh_connect_cmd) -n"',
    "OPTIONS='-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'",
    `$SSH $OPTIONS -i '${ssh.private_key_file.replaceAll("'", "'\\''")}' 'echo "hello from $(hostname)"'`,
    'api -X DELETE $API/pods/$POD | jq .status',
  ];
  return commands.map((command) => `  ${command}\n`).join('');
}
