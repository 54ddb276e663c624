/** Reads members of a parsed XML document that may be of any shape. Pure. */
import { amountOf, textOf } from './nvidia-value.ts';

/** The first of `names` with an amount. */
export function firstAmount(parent: unknown, names: readonly string[]): number | null {
  for (const name of names) {
    const amount = amountOf(rawAt(parent, name));
    if (amount !== null) return amount;
  }
  return null;
}

export function child(parent: unknown, name: string): unknown {
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, name))
    return undefined;
  return Reflect.get(parent, name);
}

export function rawAt(parent: unknown, name: string): string | undefined {
  const value = child(parent, name);
  return typeof value === 'string' ? value : undefined;
}

export function textAt(parent: unknown, name: string): string | null {
  return textOf(rawAt(parent, name));
}

export function listAt(parent: unknown, name: string): unknown[] {
  const value = child(parent, name);
  return Array.isArray(value) ? value : [];
}
