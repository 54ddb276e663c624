/** An address of this machine by which others reach it: sockets through it are not the loopback's. */
import { networkInterfaces } from 'node:os';

/** The engine's bridge at least is one. */
export function outsideAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = all.find(({ family, internal }) => family === 'IPv4' && !internal);
  if (found === undefined) throw new Error('this machine has no address but the loopback');
  return found.address;
}
