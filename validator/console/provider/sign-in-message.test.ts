import { expect, it } from 'vitest';
import { messageAt, signCommand, validForMs } from './sign-in-message.ts';

it('is the time in seconds, and is valid for five minutes', () => {
  const message = messageAt(1_795_000_000_999);
  expect(message).toBe('1795000000');
  expect(validForMs(message, 1_795_000_100_000)).toBe(200_000);
  expect(validForMs(message, 1_795_000_301_000)).toBe(0);
  expect(signCommand(message)).toBe('npm run --silent provider -- sign 1795000000');
});
