/**
 * A stand-in for Stripe's API on loopback, written from Stripe's documentation. It supports what top-ups need, and
 * signed callbacks.
 */
import { createHmac, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';

const SECRET_KEY = 'sk_test_podwright';
const CALLBACK_SECRET = 'whsec_podwright';

type Intent = {
  id: string;
  object: 'payment_intent';
  amount: number;
  currency: string;
  status: string;
  metadata: Record<string, string>;
  last_payment_error: object | null;
};
type Answer = [status: number, body: object];

const invalid = (code: string): Answer => [
  400,
  { error: { type: 'invalid_request_error', code, message: `refused: ${code}` } },
];

export type StripeServer = Awaited<ReturnType<typeof startStripeServer>>;

/**
 * Starts the server. The name of a payment method sets the result of its charges: pm_ok, pm_declined, pm_processing,
 * pm_action. The caller must call `close()`.
 */
export async function startStripeServer() {
  const intents = new Map<string, Intent>();
  const owners = new Map<string, string>();
  const payoutAccounts = new Map<string, { isComplete: boolean }>();
  const byKey = new Map<string, { form: string; answer: Answer }>();
  let failing = false;

  function createIntent(form: URLSearchParams): Answer {
    const method = form.get('payment_method') ?? '';
    const isAsked = form.get('confirm') === 'true' && form.get('off_session') === 'true';
    if (!isAsked || form.get('currency') !== 'usd') return invalid('parameter_missing');
    if (owners.get(method) !== form.get('customer')) return invalid('payment_method_not_owned');
    const declined = { type: 'card_error', code: 'card_declined', decline_code: 'do_not_honor' };
    const states: Record<string, string> = {
      pm_ok: 'succeeded',
      pm_processing: 'processing',
      pm_declined: 'requires_payment_method',
      pm_action: 'requires_action',
    };
    const intent: Intent = {
      id: `pi_${randomUUID()}`,
      object: 'payment_intent',
      amount: Number(form.get('amount')),
      currency: 'usd',
      status: states[method] ?? 'x',
      metadata: { top_up_id: form.get('metadata[top_up_id]') ?? '' },
      last_payment_error: method === 'pm_declined' ? declined : null,
    };
    intents.set(intent.id, intent);
    if (method !== 'pm_declined') return [200, intent];
    return [402, { error: { ...declined, message: 'declined', payment_intent: intent } }];
  }

  function attach(method: string, form: URLSearchParams): Answer {
    const customer = form.get('customer') ?? '';
    if (!/^pm_(?:ok|declined|processing|action)$/.test(method)) return invalid('resource_missing');
    if ((owners.get(method) ?? customer) !== customer) return invalid('payment_method_attached');
    owners.set(method, customer);
    return [200, { id: method, object: 'payment_method', customer }];
  }

  function payoutAccount(method: string, id: string): Answer {
    const name = method === 'POST' ? `acct_${randomUUID()}` : id;
    if (method === 'POST') payoutAccounts.set(name, { isComplete: false });
    const known = payoutAccounts.get(name);
    if (known === undefined) return [404, invalid('account_invalid')[1]];
    const { isComplete } = known;
    const ready = { details_submitted: isComplete, payouts_enabled: isComplete };
    return [200, { id: name, object: 'account', ...ready }];
  }

  function answerTo(method: string, path: string, form: URLSearchParams): Answer {
    const [, kind = '', id = '', action = ''] = path.split('/').slice(1);
    if (kind === 'accounts') return payoutAccount(method, id);
    if (kind === 'account_links') {
      if (!payoutAccounts.has(form.get('account') ?? '')) return invalid('account_invalid');
      return [200, { object: 'account_link', url: `https://connect.test/${form.get('account')}` }];
    }
    if (method === 'GET') {
      const intent = kind === 'payment_intents' ? intents.get(id) : undefined;
      return intent === undefined ? [404, invalid('resource_missing')[1]] : [200, intent];
    }
    if (kind === 'customers') return [200, { id: `cus_${randomUUID()}`, object: 'customer' }];
    if (kind === 'payment_methods' && action === 'attach') return attach(id, form);
    if (kind === 'payment_intents') return createIntent(form);
    return [404, invalid('resource_missing')[1]];
  }

  /** Returns the first answer again if the idempotency key repeats; rejects a repeated key with other parameters. */
  async function handle(request: IncomingMessage): Promise<Answer> {
    if (failing) return [500, { error: { type: 'api_error', message: 'down' } }];
    if (request.headers.authorization !== `Bearer ${SECRET_KEY}`) {
      return [401, { error: { type: 'invalid_request_error', message: 'wrong secret key' } }];
    }
    const form = await bodyOf(request);
    const key = request.headers['idempotency-key'];
    const known = typeof key === 'string' ? byKey.get(key) : undefined;
    if (known !== undefined && known.form !== form) {
      return [400, { error: { type: 'idempotency_error', message: 'other parameters' } }];
    }
    const { method = 'GET', url = '/' } = request;
    const answer = known?.answer ?? answerTo(method, url, new URLSearchParams(form));
    if (typeof key === 'string') byKey.set(key, { form, answer });
    return answer;
  }

  const server = createServer(async (request, response) => {
    const [status, body] = await handle(request);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  return {
    options: {
      secretKey: SECRET_KEY,
      callbackSecret: CALLBACK_SECRET,
      api: { host: '127.0.0.1', port: address.port, protocol: 'http' as const },
    },
    intents: () => [...intents.values()],
    /** Completes the onboarding of a payout account, as its owner does on the page. */
    onboard(id: string): void {
      payoutAccounts.set(id, { isComplete: true });
    },
    /** Sets the bank's final answer for a charge that was processing. */
    finish(status: 'succeeded' | 'requires_payment_method'): void {
      for (const intent of intents.values()) {
        if (intent.status === 'processing') intent.status = status;
      }
    },
    /** Makes every request fail until it is called with false. */
    fail(next: boolean): void {
      failing = next;
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** Returns a callback as Stripe signs it: HMAC-SHA256 over time and body. */
export function stripeCallback(
  type: string,
  object: object,
  atMs: number,
  secret = CALLBACK_SECRET,
) {
  const event = { id: `evt_${randomUUID()}`, object: 'event', type, data: { object } };
  const payload = JSON.stringify(event);
  const time = Math.floor(atMs / 1_000);
  const mac = createHmac('sha256', secret).update(`${time}.${payload}`).digest('hex');
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'stripe-signature': `t=${time},v1=${mac}`,
  };
  return { payload, headers };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
