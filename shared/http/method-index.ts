/** Which methods a path has: what turns fastify's 404 into a 405 with an Allow header. */

type Entry = { pattern: RegExp; methods: Set<string> };

/** Holds one entry per distinct route pattern (`:name` and `*` as in fastify). */
export function createMethodIndex() {
  const entries = new Map<string, Entry>();
  return {
    add(method: string | string[], url: string): void {
      const entry = entries.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
      for (const name of [method].flat()) entry.methods.add(name);
      entries.set(url, entry);
    },
    /** Sorted; empty when no route has this path. */
    methodsOf(path: string): string[] {
      const found = [...entries.values()].filter((entry) => entry.pattern.test(path));
      return [...new Set(found.flatMap((entry) => [...entry.methods]))].sort();
    },
  };
}

function patternOf(url: string): RegExp {
  const parts = url.replace(/\/+$/, '').split('/').map(partPattern);
  return new RegExp(`^${parts.join('/')}/?$`);
}

function partPattern(part: string): string {
  if (part === '*') return '.*';
  if (part.startsWith(':')) return '[^/]+';
  return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
