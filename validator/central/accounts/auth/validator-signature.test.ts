import { expect, it } from 'vitest';
import { toHex } from '#shared/signing/sr25519.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';

const text = (nowMs: number) => String(Math.floor(nowMs / 1_000));

it("accepts a validator's signature once", async () => {
  const market = await createTestMarket();
  try {
    const { validator, clock } = market;
    const timestamp = text(clock.now());
    const sign = () => ({
      hotkey: validator.hotkey,
      timestamp,
      signature: toHex(validator.sign(new TextEncoder().encode(timestamp))),
    });
    const ask = async (headers: Record<string, string>) =>
      (await market.call('POST', `/validator/${validator.hotkey}/executors`, { headers, body: {} }))
        .status;
    const first = sign();
    expect(await ask(first)).toBe(200);
    expect(await ask(first)).toBe(401);
    expect(
      await ask({ ...first, signature: first.signature.toUpperCase().replace('0X', '0x') }),
    ).toBe(401);
    // Signing again within the same second produces another signature.
    expect(await ask(sign())).toBe(200);
    await clock.advance(302_000);
    await market.central.sweepAccounts();
    expect(await market.ports.db.selectFrom('login_nonces').selectAll().execute()).toEqual([]);
  } finally {
    await market.close();
  }
});

it("does not accept a validator's signature as portal log-in", async () => {
  const market = await createTestMarket();
  try {
    const { validator, clock } = market;
    const message = text(clock.now());
    const signature = toHex(validator.sign(new TextEncoder().encode(message)));
    const body = { miner_hotkey: validator.hotkey, message, signature };
    const { status, body: answer } = await market.portal('POST', '/auth/login-flexible', { body });
    expect([status, answer.error.code]).toEqual([403, 'forbidden']);
  } finally {
    await market.close();
  }
});
