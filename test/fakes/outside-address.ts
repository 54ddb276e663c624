/** An address of this machine that is not loopback. */
import { networkInterfaces } from 'node:os';

/** Throws if there is none. The engine's bridge always has one. */
export function outsideAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (found === undefined) throw new Error('this machine has no address but the loopback');
  return found.address;
}
