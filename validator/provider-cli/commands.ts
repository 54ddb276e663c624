/** The commands of the provider's command line: options, help and work of each. */
import type { ParseArgsOptionsConfig } from 'node:util';
import { EnrolmentRequest, parsePastedLine, signEnrolment } from '#shared/api/agent/identity.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
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
  run(input: Input, ports: Ports): Promise<Outcome>;
};

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

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
  add: {
    words: [],
    options: { address: text, port: text, 'gpu-type': text, 'gpu-count': text, price: text },
    help: `add --address IP [--port N] --gpu-type TYPE [--gpu-count N] [--price USD]
  Adds a node: the public IP address and the port of its agent (8080), the type and number of its GPUs (1), and the
  price in USD per GPU and hour (the reference price of the type).`,
    run: addNode,
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
    async run({ words: [id = '', usd = ''] }, { home }) {
      const price = amountIn('USD', usd);
      const node = await createPortalClient(portalSession(home)).setPrice(id, price);
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
    run: announce,
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
    ip_address: required(values, 'address'),
    port: countIn('--port', option(values, 'port') ?? '8080'),
    gpu_type: required(values, 'gpu-type'),
    gpu_count: countIn('--gpu-count', option(values, 'gpu-count') ?? '1'),
    ...(price === undefined ? {} : { price_per_gpu: amountIn('--price', price) }),
  });
  const next = `A validator checks the node when its agent runs with AGENT_EXECUTOR_ID=${node.id} and is enrolled.
Then read the result: npm run provider -- list ${node.id}\n`;
  return { json: node, text: nodesText([node]) + next };
}

async function announce({ words: [id = ''], values }: Input, ports: Ports): Promise<Outcome> {
  const portal = createPortalClient(portalSession(ports.home));
  if (values['withdraw'] === true) {
    if (Object.keys(values).length > 1) throw usage('notice', '--withdraw has no other options');
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

function noticeIn(values: Input['values'], clock: Clock): Notice {
  const minutes = option(values, 'minutes');
  const isRemoval = values['removal'] === true;
  if (isRemoval === (minutes !== undefined)) {
    throw usage('notice', 'exactly one of --removal, --minutes and --withdraw is required');
  }
  const [at, wait, reason] = [option(values, 'at'), option(values, 'in'), option(values, 'reason')];
  if ((at === undefined) === (wait === undefined)) {
    throw usage('notice', 'exactly one of --at and --in is required');
  }
  const when = {
    starting_at: at ?? `${naiveUtc(clock.now() + durationIn(wait ?? ''))}Z`,
    ...(reason === undefined ? {} : { reason }),
  };
  return minutes === undefined
    ? { ...when, permanent_removal: true }
    : { ...when, period_in_minute: countIn('--minutes', minutes) };
}

function durationIn(given: string): number {
  const [, count = '', unit = ''] = /^(\d{1,4})([hd])$/.exec(given) ?? [];
  const { [unit]: ms } = UNITS;
  if (ms === undefined) throw usage('notice', `--in ${given}: not a duration like 72h or 3d`);
  return Number(count) * ms;
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

function required(values: Input['values'], name: string): string {
  const value = option(values, name);
  if (value === undefined) throw usage('add', `--${name} is required`);
  return value;
}

function countIn(name: string, given: string): number {
  if (/^\d{1,5}$/.test(given)) return Number(given);
  throw usage('', `${name} ${given}: not a whole number`);
}

function amountIn(name: string, given: string): number {
  if (/^\d{1,6}(?:\.\d{1,6})?$/.test(given)) return Number(given);
  throw usage('', `${name} ${given}: not an amount in USD like 2.5`);
}

/** `command` is empty if several commands have the option. */
export function usage(command: string, message: string): ProviderError {
  const words = ['npm run provider --', command, '--help'].filter((word) => word !== '');
  return new ProviderError('usage', message, `See ${words.join(' ')}`);
}
