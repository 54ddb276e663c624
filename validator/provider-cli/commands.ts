/** The commands of the provider's command line: options, help and work of each. */
import type { ParseArgsOptionsConfig } from 'node:util';
import { EnrolmentRequest, parsePastedLine, signEnrolment } from '#shared/api/agent/identity.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import { isSecureUrl } from '#shared/tls/tls-mode.ts';
import { nodesText, noticeText, priceText, verdictText } from './node-text.ts';
import { createPortalClient, logInToPortal, type Notice } from './portal-client.ts';
import { ProviderError } from './problem.ts';
import { portalUrlOf, requireSession, writeSession } from './session.ts';

export type Input = {
  /** Arguments without options, as many as the command names. */
  words: readonly string[];
  values: Readonly<Record<string, string | boolean | undefined>>;
};

export type Ports = {
  home: string;
  clock: Clock;
  random: Random;
  warn(message: string): void;
};

/** The result for scripts (`--json`) and for people. */
export type Outcome = { json: unknown; text: string };

export type Command = {
  /** Arguments without options. The last `optional` of them may be absent. */
  words: readonly string[];
  optional?: number;
  options: ParseArgsOptionsConfig;
  /** Usage after the name, and what the command does. */
  help: string;
  /** Returns every problem with the values of the arguments. `run` is called only if there is none. */
  problems?(input: Input): readonly string[];
  run(input: Input, ports: Ports): Promise<Outcome>;
};

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

/** Port of the agent. */
const DEFAULT_PORT = 8080;

export const COMMANDS: Readonly<Record<string, Command>> = {
  key: {
    words: [],
    options: { import: text, 'passphrase-file': text },
    help: `key [--import FILE] [--passphrase-file FILE]
  Prints the provider's hotkey. Creates the key if there is none, or imports it from a file of mode 0600: a seed of 64
  hex digits, or an encrypted key file of the chain's tools. With --passphrase-file, the stored key is encrypted.`,
    async run({ values }, ports) {
      const { provideKey } = await import('./provider-key.ts');
      const report = await provideKey(
        keyOptions(values, ports),
        option(values, 'import'),
        ports.random,
      );
      const how = report.encrypted ? 'encrypted' : 'not encrypted';
      return { json: report, text: `${report.hotkey}\n${report.file} (mode 0600, ${how})\n` };
    },
  },
  login: {
    words: [],
    options: { url: text, 'passphrase-file': text },
    help: `login --url https://<central API> [--passphrase-file FILE]
  Logs in with a signature of the key, and stores the session of 7 days. The first login creates the provider. Later
  logins use the stored address. An encrypted key needs --passphrase-file.`,
    run: logIn,
  },
  sign: {
    words: ['TIME'],
    options: { 'passphrase-file': text },
    help: `sign TIME [--passphrase-file FILE]
  Signs the time that the log-in page of the console shows, and prints the hotkey and the signature to paste there. TIME
  is a number of seconds; nothing else is signed.`,
    problems: ({ words: [time = ''] }) =>
      /^\d{1,12}$/.test(time) ? [] : [`TIME ${time}: not a number of seconds`],
    async run({ words: [time = ''], values }, ports) {
      const { openProviderKey } = await import('./provider-key.ts');
      const { hotkey, sign } = await openProviderKey(keyOptions(values, ports));
      const signature = toHex(sign(new TextEncoder().encode(time)));
      return { json: { hotkey, message: time, signature }, text: `${hotkey}\n${signature}\n` };
    },
  },
  add: {
    words: [],
    options: { address: text, port: text, 'gpu-type': text, 'gpu-count': text, price: text },
    help: `add --address IP [--port N] --gpu-type TYPE [--gpu-count N] [--price USD]
  Adds a node: the public IP address and the port of its agent (default ${DEFAULT_PORT}), the type and number of its GPUs
  (default 1), and the price in USD per GPU and hour (default: the reference price of the type).`,
    problems: ({ values }) => [
      ...missing(values, 'address'),
      ...missing(values, 'gpu-type'),
      ...notCounts(values, 'port'),
      ...notCounts(values, 'gpu-count'),
      ...notAmount('--price', option(values, 'price')),
    ],
    run: addNode,
  },
  variables: {
    words: ['ID'],
    options: {},
    help: `variables ID
  Prints the variables that the node's agent needs: the node's id, and the key of the validator that the central API
  names. Append them to /etc/podwright/agent.env on the host, or set them for npm run host.`,
    async run({ words: [id = ''] }, { home }) {
      const portal = createPortalClient(portalSession(home));
      const [node, hotkey] = await Promise.all([portal.node(id), portal.validatorHotkey()]);
      const variables = {
        AGENT_EXECUTOR_ID: node.id,
        AGENT_TRUSTED_KEYS: `${hotkey}=validator-control`,
      };
      const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
      return { json: variables, text: lines.join('') };
    },
  },
  enrol: {
    words: ['REQUEST'],
    options: { 'passphrase-file': text },
    help: `enrol REQUEST [--passphrase-file FILE]
  Signs the line that "npm run agent -- enrol request" printed on the host, and prints the line for "enrol accept".`,
    async run({ words: [request = ''], values }, ports) {
      const { openProviderKey } = await import('./provider-key.ts');
      const signer = await openProviderKey(keyOptions(values, ports));
      const enrolment = signEnrolment(enrolmentRequestIn(request), signer);
      return { json: enrolment, text: `${JSON.stringify(enrolment)}\n` };
    },
  },
  list: {
    words: ['ID'],
    optional: 1,
    options: {},
    help: `list [ID]
  Lists the nodes: id, state, address, GPUs and price; below each, its notice, and the remedy for each problem that
  prevents rentals. With an id, also the last verdict with all its checks.`,
    async run({ words: [id] }, { home }) {
      const portal = createPortalClient(portalSession(home));
      if (id === undefined) {
        const nodes = await portal.nodes();
        return { json: nodes, text: nodesText(nodes) };
      }
      const node = await portal.node(id);
      const verification = await portal.verification(id);
      return { json: { ...node, verification }, text: verdictText(node, verification) };
    },
  },
  price: {
    words: ['ID', 'USD'],
    options: {},
    help: `price ID USD
  Changes the price in USD per GPU and hour for new rentals. The prices of running pods do not change.`,
    problems: ({ words: [, usd] }) => notAmount('USD', usd),
    async run({ words: [id = '', usd] }, { home }) {
      const node = await createPortalClient(portalSession(home)).setPrice(id, Number(usd));
      return { json: node, text: `${node.id}: ${priceText(node)}\n` };
    },
  },
  notice: {
    words: ['ID'],
    options: { removal: flag, minutes: text, at: text, in: text, reason: text, withdraw: flag },
    help: `notice ID (--removal | --minutes N) (--at TIME | --in DURATION) [--reason TEXT]
notice ID --withdraw
  Announces the removal of a node, at least 48 hours ahead, or maintenance of 1 to 60 minutes, at least 24 hours ahead.
  TIME has an offset (2027-01-20T08:00:00Z); DURATION is a number of hours or days (72h, 3d). --withdraw withdraws an
  announcement whose time has not come.`,
    problems: noticeProblems,
    run: announce,
  },
  remove: {
    words: ['ID'],
    options: {},
    help: `remove ID
  Removes a node without pods at once, for good. Renters must leave a node first: announce its removal with
  "notice ID --removal", and run remove after the announced time. Then run "npm run agent -- remove-all" on the host.`,
    async run({ words: [id = ''] }, { home }) {
      await createPortalClient(portalSession(home)).removeNode(id);
      return { json: { id, removed: true }, text: `${id}: removed\n` };
    },
  },
};

async function logIn({ values }: Input, ports: Ports): Promise<Outcome> {
  const { home, clock, random, warn } = ports;
  const url = option(values, 'url');
  const portal_url = url === undefined ? requireSession(home).portal_url : portalUrlOf(url);
  if (!isSecureUrl(portal_url)) {
    warn(`${portal_url} is not HTTPS: others on the path can read the session and use it`);
  }
  const { openProviderKey } = await import('./provider-key.ts');
  const signer = await openProviderKey(keyOptions(values, ports));
  const token = await logInToPortal(portal_url, signer, clock);
  const { hotkey } = signer;
  const file = writeSession(home, { portal_url, hotkey, token }, random);
  const said = `Logged in at ${portal_url} as ${hotkey}, for 7 days. The session is in ${file} (mode 0600).\n`;
  return { json: { portal_url, hotkey, file }, text: said };
}

function enrolmentRequestIn(line: string): EnrolmentRequest {
  try {
    return parsePastedLine(EnrolmentRequest, line, 'request');
  } catch (error) {
    throw usage('enrol', messageOf(error));
  }
}

async function addNode({ values }: Input, { home }: Ports): Promise<Outcome> {
  const price = option(values, 'price');
  const node = await createPortalClient(portalSession(home)).addNode({
    ip_address: option(values, 'address') ?? '',
    port: Number(option(values, 'port') ?? DEFAULT_PORT),
    gpu_type: option(values, 'gpu-type') ?? '',
    gpu_count: Number(option(values, 'gpu-count') ?? 1),
    ...(price === undefined ? {} : { price_per_gpu: Number(price) }),
  });
  const next = `A validator checks the node when its agent is enrolled and runs with AGENT_EXECUTOR_ID=${node.id}.
Print all variables of the agent: npm run provider -- variables ${node.id}
Then read the result: npm run provider -- list ${node.id}\n`;
  return { json: node, text: nodesText([node]) + next };
}

async function announce({ words: [id = ''], values }: Input, ports: Ports): Promise<Outcome> {
  const portal = createPortalClient(portalSession(ports.home));
  if (values['withdraw'] === true) {
    const notice = await portal.withdrawNotice(id);
    return { json: notice, text: `${id}: the notice is withdrawn\n` };
  }
  const notice = await portal.announce(id, noticeIn(values, ports.clock));
  return {
    json: notice,
    text: notice === null ? '' : `${id}: announced: ${noticeText(notice)}\n`,
  };
}

const HOUR_MS = 3_600_000;
const UNITS: Readonly<Record<string, number>> = { h: HOUR_MS, d: 24 * HOUR_MS };

function noticeProblems({ values }: Input): string[] {
  const given = (...names: string[]) => names.filter((name) => values[name] !== undefined).length;
  if (values['withdraw'] === true) {
    const isAlone = given('removal', 'minutes', 'at', 'in', 'reason') === 0;
    return isAlone ? [] : ['--withdraw has no other options'];
  }
  const wait = option(values, 'in');
  const isWrong = wait !== undefined && durationIn(wait) === null;
  return [
    ...(given('removal', 'minutes') === 1
      ? []
      : ['exactly one of --removal, --minutes and --withdraw is required']),
    ...(given('at', 'in') === 1 ? [] : ['exactly one of --at and --in is required']),
    ...(isWrong ? [`--in ${wait}: not a duration like 72h or 3d`] : []),
    ...notCounts(values, 'minutes'),
  ];
}

function noticeIn(values: Input['values'], clock: Clock): Notice {
  const [minutes, reason] = [option(values, 'minutes'), option(values, 'reason')];
  const waitMs = durationIn(option(values, 'in') ?? '') ?? 0;
  const when = {
    starting_at: option(values, 'at') ?? `${naiveUtc(clock.now() + waitMs)}Z`,
    ...(reason === undefined ? {} : { reason }),
  };
  return minutes === undefined
    ? { ...when, permanent_removal: true }
    : { ...when, period_in_minute: Number(minutes) };
}

/** Returns milliseconds; null if the text is not a duration. */
function durationIn(given: string): number | null {
  const [, count = '', unit = ''] = /^(\d{1,4})([hd])$/.exec(given) ?? [];
  const { [unit]: ms } = UNITS;
  return ms === undefined ? null : Number(count) * ms;
}

function portalSession(home: string) {
  const { portal_url: portalUrl, token } = requireSession(home);
  return { portalUrl, token };
}

function keyOptions(values: Input['values'], { home }: Ports) {
  return { home, passphraseFile: option(values, 'passphrase-file') };
}

function option(values: Input['values'], name: string): string | undefined {
  const { [name]: value } = values;
  return typeof value === 'string' ? value : undefined;
}

function missing(values: Input['values'], name: string): string[] {
  return option(values, name) === undefined ? [`--${name} is required`] : [];
}

function notCounts(values: Input['values'], name: string): string[] {
  const given = option(values, name);
  if (given === undefined || /^\d{1,5}$/.test(given)) return [];
  return [`--${name} ${given}: not a whole number`];
}

function notAmount(name: string, given: string | undefined): string[] {
  if (given === undefined || /^\d{1,6}(?:\.\d{1,6})?$/.test(given)) return [];
  return [`${name} ${given}: not an amount in USD like 2.5`];
}

/** `command` is empty if several commands have the option. */
export function usage(command: string, message: string): ProviderError {
  const words = ['npm run provider --', command, '--help'].filter((word) => word !== '');
  return new ProviderError('usage', message, `See ${words.join(' ')}`);
}
