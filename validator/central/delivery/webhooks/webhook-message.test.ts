import { Webhook as Verifier } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { makeSecret, signedHeaders } from './webhook-message.ts';

const BODY = '{"test": 2432232314}';
/** Difference from the limit that exceeds the duration of this test. */
const MARGIN_MS = 30_000;
const TOLERANCE_MS = 300_000;

it('signs the example of the Standard Webhooks specification', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: BODY, secrets: [secret] };
  expect(signedHeaders(message, 1_614_265_330_999)).toEqual({
    'webhook-id': message.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

it.each([
  [MARGIN_MS - TOLERANCE_MS, true],
  [TOLERANCE_MS - MARGIN_MS, true],
  [-TOLERANCE_MS - MARGIN_MS, false],
  [TOLERANCE_MS + MARGIN_MS, false],
])('verifies a message whose time differs by %d ms: %s', (ms, isTaken) => {
  const secret = makeSecret(systemRandom);
  const headers = signedHeaders({ id: 'm', body: BODY, secrets: [secret] }, systemClock.now() + ms);
  const verify = () => new Verifier(secret).verify(BODY, headers);
  if (isTaken) expect(verify()).toEqual(JSON.parse(BODY));
  else expect(verify).toThrow(/timestamp/);
});

it('verifies the signature header with each of the signing secrets, and with no other secret', () => {
  const secrets = [makeSecret(systemRandom), makeSecret(systemRandom)];
  const headers = signedHeaders({ id: 'm', body: BODY, secrets }, systemClock.now());
  for (const secret of secrets) new Verifier(secret).verify(BODY, headers);
  expect(() => new Verifier(makeSecret(systemRandom)).verify(BODY, headers)).toThrow(/signature/);
  for (const wrong of [{ ...headers, 'webhook-id': 'n' }, headers]) {
    const body = wrong === headers ? `${BODY} ` : BODY;
    expect(() => new Verifier(secrets[0] ?? '').verify(body, wrong)).toThrow(/signature/);
  }
});
