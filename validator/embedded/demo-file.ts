/** `demo.json` in the home folder: everything that a script needs to use the local marketplace. */
import { type Home, writePrivateFile } from './home.ts';
import type { MetricsUrl } from './metrics-listeners.ts';

export type DemoFile = {
  base_url: string;
  portal_url: string;
  /** Null until there is a web console. */
  console_url: string | null;
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

/** Block that `npm start` prints once everything answers. */
export function readyText(demo: DemoFile, home: Home, simulated: boolean): string {
  const { base_url: base, account } = demo;
  const key = `-H 'X-API-Key: ${account.api_key}'`;
  const template = demo.templates[0]?.id ?? '';
  const executor = demo.executors[0]?.id ?? '';
  const gpus = simulated ? '\n  GPUs are simulated: pods run, but nothing computes on a GPU.' : '';
  return `
Podwright is ready.${gpus}

  API        ${base}
  portal     ${demo.portal_url}
  validator  ${demo.validator_url}
  API key    ${account.api_key}
  details    ${home.demoFile}

Try:
  curl -s ${key} ${base}/executors
  curl -s ${key} -H 'Content-Type: application/json' -d '{"pod_name":"first","template_id":"${template}"}' ${base}/executors/${executor}/rent
  curl -s ${key} ${base}/pods

Ctrl-C stops everything.
`;
}
