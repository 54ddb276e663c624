/**
 * Spans around requests, hops and steps, where somebody traces: without a tracer every call here is the work alone.
 * One tracer per process, as there is one exporter; it is set at the start, and tests set their own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

export type SpanWish = {
  /** Few different ones: routes and operations, no ids. */
  name: string;
  kind: 'server' | 'client' | 'internal';
  attributes?: Readonly<Record<string, string | number>>;
};

export type OpenSpan = {
  /** As the header of the next hop has it (W3C trace context). */
  traceparent: string;
  note(attributes: Readonly<Record<string, string | number>>): void;
  /** Null: it went well. */
  end(problem: string | null): void;
};

export type Tracer = {
  /** `parent`: a traceparent; null or malformed: the span is a trace's first. */
  open(wish: SpanWish, parent: string | null): OpenSpan;
};

const storage = new AsyncLocalStorage<OpenSpan>();
let tracer: Tracer | null = null;

/** Null: nobody traces. */
export function traceWith(chosen: Tracer | null): void {
  tracer = chosen;
}

/** Null where nobody traces. Without `parent` it is part of what is under way. */
export function openSpan(wish: SpanWish, parent?: string): OpenSpan | null {
  return tracer?.open(wish, parent ?? currentTraceparent()) ?? null;
}

/** `work`, and all that comes of it, is part of the span. */
export function within<T>(span: OpenSpan | null, work: () => T): T {
  return span === null ? work() : storage.run(span, work);
}

/** A span as long as `work` takes. */
export async function inSpan<T>(wish: SpanWish, work: () => Promise<T>): Promise<T> {
  const span = openSpan(wish);
  if (span === null) return work();
  try {
    const result = await within(span, work);
    span.end(null);
    return result;
  } catch (error) {
    span.end(error instanceof Error ? error.name : 'error');
    throw error;
  }
}

/** For the header of a request to another process; null outside of spans. */
export function currentTraceparent(): string | null {
  return storage.getStore()?.traceparent ?? null;
}
